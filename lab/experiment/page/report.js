"use strict";
// Draws the plots of a report from the data that is in the page.
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  // Okabe and Ito's colours, which differ for all common kinds of sight, and dashes beside them.
  const colours = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "currentColor", "#8a8a00"];
  const dashes = ["", "7 3", "2 3", "9 3 2 3", "12 4", "4 4", "1 3", "6 2 1 2"];
  const many = data.variants.length > colours.length;
  const colour = (v) => (many ? "#7d8590" : colours[v]);
  const dash = (v) => dashes[v % dashes.length];
  const root = document.getElementById("plots");
  const width = Math.max(300, Math.min(540, root.clientWidth)); // of a plot
  const short = (name) => (name.length > 14 ? name.slice(0, 13) + "…" : name); // as axes have room for
  // A scale of values that are all the same would have no extent.
  const over = (values) => {
    const [low, high] = d3.extent(values);
    return low === high ? { domain: [low - 1, high + 1] } : { nice: true };
  };

  const element = (name, text, className) => {
    const e = document.createElement(name);
    if (text !== undefined) e.textContent = text;
    if (className) e.className = className;
    return e;
  };
  const section = (title, about) => {
    const s = element("section");
    s.append(element("h2", title), element("p", about));
    root.append(s);
    return s;
  };
  const legend = () => {
    const box = element("div", undefined, "legend");
    data.variants.forEach((name, v) => {
      const item = element("span");
      const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
      svg.setAttribute("width", 30);
      svg.setAttribute("height", 10);
      const line = document.createElementNS("http://www.w3.org/2000/svg", "line");
      for (const [k, x] of Object.entries({ x1: 0, x2: 30, y1: 5, y2: 5, stroke: colour(v), "stroke-width": 2.5, "stroke-dasharray": dash(v) })) line.setAttribute(k, x);
      svg.append(line);
      item.append(svg, name);
      box.append(item);
    });
    return box;
  };
  const figure = (grid, column, options, note) => {
    const f = element("figure");
    f.append(element("h3", column.name), element("figcaption", note || column.description));
    const plot = Plot.plot({ width, height: 270, marginTop: 34, marginLeft: 62, marginBottom: 40, style: { fontSize: "12px", background: "none" }, ...options });
    // To somebody who hears the page a plot is one picture; its numbers are in the tables.
    plot.querySelectorAll("[aria-label]").forEach((e) => e.removeAttribute("aria-label"));
    for (const svg of plot.matches("svg") ? [plot] : plot.querySelectorAll("svg")) {
      svg.setAttribute("role", "img");
      svg.setAttribute("aria-label", `plot of ${column.name}`);
    }
    f.append(plot);
    grid.append(f);
  };
  const grid = (s) => {
    const g = element("div", undefined, "grid");
    s.append(g);
    return g;
  };
  const columns = data.columns || [];
  const pointName = (p) => data.params.map((name, i) => `${name} = ${data.points[p][i]}`).join(", ");
  // Draws what is of one point of the params, which a reader chooses where there are several: runs
  // under other params are another population.
  const byPoint = (s, draw) => {
    const select = element("select");
    data.points.forEach((_, p) => select.add(new Option(pointName(p), p)));
    const g = element("div", undefined, "grid");
    const show = () => {
      g.replaceChildren();
      draw(g, Number(select.value));
    };
    if (data.points.length > 1) {
      const label = element("label", "at ");
      label.append(select);
      s.append(label);
      select.onchange = show;
    }
    s.append(g);
    show();
  };

  // Lines over ticks.
  if (data.lines && data.lines.length) {
    const s = section("Over time", "The mean of the runs of a variant. The darker band is the 95 % interval of the mean, the lighter one holds the middle 80 % of the runs.");
    s.append(legend());
    byPoint(s, (g, p) => columns.forEach((column, m) => {
      const lines = data.lines.filter((l) => l.m === m && l.p === p);
      const marks = [Plot.ruleY([0], { strokeOpacity: 0.2 })];
      const rows = (l) => l.t.map((t, i) => ({ t, mean: l.mean[i], low: l.low[i], high: l.high[i], p10: l.p10[i], p90: l.p90[i] })).filter((d) => d.mean !== null);
      for (const l of lines) {
        const d = rows(l);
        marks.push(Plot.areaY(d, { x: "t", y1: "p10", y2: "p90", fill: colour(l.v), fillOpacity: 0.12 }));
        marks.push(Plot.areaY(d.filter((x) => x.low !== null), { x: "t", y1: "low", y2: "high", fill: colour(l.v), fillOpacity: 0.3 }));
      }
      for (const l of lines) marks.push(Plot.lineY(rows(l), { x: "t", y: "mean", stroke: colour(l.v), strokeWidth: 2, strokeDasharray: dash(l.v) }));
      const all = lines.flatMap((l) => rows(l).flatMap((d) => [0, d.mean, d.low ?? d.mean, d.high ?? d.mean, d.p10, d.p90]));
      figure(g, column, { x: { label: "tick" }, y: { label: column.name, grid: true, ...over(all) }, marks });
    }));
  }

  // Differences of pairs.
  if (data.pairs.length && data.points.length === 1) {
    const s = section("Paired differences", `At the end of the runs, seed by seed: each variant less ${data.variants[0]}. The point is the mean, the bar its 95 % interval; a bar that does not cross 0 is a difference that the seeds do not explain.`);
    const g = grid(s);
    columns.forEach((column) => {
      const d = data.pairs.filter((p) => p.measure === column.name && p.low !== null);
      if (!d.length) return;
      const of = (p) => colour(data.variants.indexOf(p.variant));
      figure(g, column, {
        height: 90 + 34 * d.length, marginLeft: 130,
        x: { label: `difference of ${column.name}`, grid: true, ...over(d.flatMap((p) => [0, p.low, p.high])) },
        y: { label: null, domain: d.map((p) => p.variant), tickFormat: short },
        marks: [
          Plot.ruleX([0], { stroke: "currentColor" }),
          Plot.ruleY(d, { y: "variant", x1: "low", x2: "high", stroke: of, strokeWidth: 5, strokeOpacity: 0.45 }),
          Plot.dot(d, { y: "variant", x: "mean", fill: of, r: 5 }),
        ],
      });
    });
  }

  // Distributions at the end.
  if (columns.length) {
    const s = section("Distributions", "What the runs have come to at their ends. The line is the mean.");
    byPoint(s, (g, p) => columns.forEach((column, m) => {
      const d = [];
      for (const e of data.ends) if (e.m === m && e.p === p) for (const x of e.x) if (x !== null) d.push({ variant: data.variants[e.v], v: e.v, x });
      if (!d.length) return;
      const n = data.variants.length;
      const [low, high] = d3.extent(d, (x) => x.x);
      figure(g, column, {
        height: 74 + Math.min(n, 12) * Math.max(72, 190 / n), marginRight: 110, insetTop: 14, fy: { label: null, domain: data.variants, tickFormat: short },
        x: { label: column.name, ...over([low, high]) }, y: { label: "runs", grid: true, ticks: 3 },
        marks: [
          Plot.rectY(d, Plot.binX({ y: "count" }, { x: "x", fy: "variant", fill: (x) => colour(x.v), fillOpacity: 0.75, thresholds: low === high ? [low - 0.5, low + 0.5] : 24 })),
          Plot.ruleX(d, Plot.groupZ({ x: "mean" }, { x: "x", z: "variant", fy: "variant", stroke: "currentColor", strokeWidth: 1.5 })),
          Plot.ruleY([0]),
        ],
      });
    }));
  }

  // One param: lines over it. Two or more: heat maps over the first two.
  const mean = (v, p, m) => {
    const e = data.ends.find((x) => x.v === v && x.p === p && x.m === m);
    const x = e ? e.x.filter((y) => y !== null) : [];
    return x.length ? d3.mean(x) : null;
  };
  if (data.params.length === 1 && data.points.length > 1) {
    const s = section(`Over ${data.params[0]}`, "The mean at the end of the runs, with its 95 % interval.");
    s.append(legend());
    const g = grid(s);
    columns.forEach((column) => {
      const d = data.statistics.filter((x) => x.measure === column.name && x.mean !== null).map((x) => ({ ...x, at: x.point[0], v: data.variants.indexOf(x.variant) }));
      const numbers = d.every((x) => typeof x.at === "number");
      figure(g, column, {
        insetLeft: 12, insetRight: 12, insetBottom: 6, x: { label: data.params[0], type: numbers ? undefined : "point" }, y: { label: column.name, grid: true, ...over(d.flatMap((x) => [x.mean, x.low ?? x.mean, x.high ?? x.mean])) },
        marks: data.variants.flatMap((_, v) => {
          const one = d.filter((x) => x.v === v);
          return [
            Plot.ruleX(one.filter((x) => x.low !== null), { x: "at", y1: "low", y2: "high", stroke: colour(v), strokeWidth: 4, strokeOpacity: 0.35 }),
            Plot.lineY(one, { x: "at", y: "mean", stroke: colour(v), strokeWidth: 2, strokeDasharray: dash(v) }),
            Plot.dot(one, { x: "at", y: "mean", fill: colour(v), r: 3.5 }),
          ];
        }),
      });
    });
  }
  if (data.params.length > 1 && data.points.length > 1) {
    const [px, py] = data.params;
    const s = section(`Over ${px} and ${py}`, `The mean at the end of the runs${data.params.length > 2 ? ", over all values of the other params" : ""}, variant by variant.`);
    const g = grid(s);
    const distinct = new Set(data.points.map((p) => p[0])).size * new Set(data.points.map((p) => p[1])).size;
    const sampled = distinct > 4 * data.points.length; // points that were drawn make no grid
    columns.forEach((column, m) => {
      const all = [];
      data.variants.forEach((variant, v) => data.points.forEach((point, p) => {
        const z = mean(v, p, m);
        if (z !== null) all.push({ variant, x: point[0], y: point[1], z });
      }));
      const d = d3.flatGroup(all, (a) => a.variant, (a) => a.x, (a) => a.y).map(([variant, x, y, of]) => ({ variant, x, y, z: d3.mean(of, (a) => a.z) }));
      if (!d.length) return;
      const [low, high] = d3.extent(d, (a) => a.z);
      const crowded = !sampled && new Set(d.map((a) => a.x)).size * 36 > width - 180;
      figure(g, column, {
        height: 70 + (crowded ? 40 : 0) + 170 * data.variants.length, marginLeft: 70, marginRight: 110, marginBottom: crowded ? 70 : 40,
        fy: { label: null, domain: data.variants, tickFormat: short }, padding: 0.04,
        x: { label: px, type: sampled ? "linear" : "band", ...(crowded ? { tickRotate: -60 } : {}) },
        y: { label: py, type: sampled ? "linear" : "band", reverse: !sampled },
        color: { scheme: "cividis", legend: true, label: column.name, width: Math.min(width, 300), marginLeft: 16, marginRight: 16, ...(low === high ? { domain: [low - 1, high + 1] } : {}) },
        marks: sampled
          ? [Plot.dot(d, { fy: "variant", x: "x", y: "y", fill: "z", r: 7 })]
          : [Plot.cell(d, { fy: "variant", x: "x", y: "y", fill: "z", inset: 0.5 })],
      });
    });
  }
})();
