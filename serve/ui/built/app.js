// Made by make page from serve/ui/page. DO NOT EDIT. What others published in it: vendor/*.LICENSE.txt.

// vendor/preact.js
var n;
var t;
var r;
var u;
var i;
var f;
var o;
var e;
var l;
var c;
var a;
var s;
var h = /* @__PURE__ */ Symbol.for("pv");
var p = {};
var y = [];
var v = /^m(i|n|o|s|text|space)$/;
var w = Array.isArray;
var d = y.slice;
var _ = Object.assign;
function g(n4) {
  n4 && n4.parentNode && n4.remove();
}
function k(n4, t5, r4) {
  var u4, i4, f4, o4 = {}, e4 = arguments.length;
  for (f4 in t5) "key" == f4 ? u4 = t5[f4] : "ref" == f4 && "function" != typeof n4 ? i4 = t5[f4] : o4[f4] = t5[f4];
  return e4 > 2 && (o4.children = e4 > 3 ? d.call(arguments, 2) : r4), m(n4, o4, u4, i4, null);
}
function m(r4, u4, i4, f4, o4) {
  var e4 = { type: r4, props: u4, key: i4, ref: f4, __k: null, __: null, __b: 0, __e: null, __c: null, constructor: h, __v: o4 || ++t, __i: -1, __u: 0 };
  return !o4 && n.vnode && n.vnode(e4), e4;
}
function $(n4) {
  return n4.children;
}
function x(n4, t5) {
  this.props = n4, this.context = t5, this.__g = 0;
}
function S(n4, t5) {
  if (null == t5) return n4.__ && S(n4.__, n4.__i + 1);
  for (var r4; t5 < n4.__k.length; t5++) if ((r4 = n4.__k[t5]) && r4.__e) return r4.__e;
  return "function" != typeof n4.type || n4.props.__P ? null : S(n4);
}
function C(t5) {
  var r4, u4 = t5.__v, i4 = u4.__e, f4 = [], o4 = [], e4 = t5.__P;
  e4 && ((r4 = _({ constructor: h }, u4)).__v = u4.__v + 1, n.vnode && n.vnode(r4), z(e4, r4, u4, t5.__n, e4.namespaceURI, 32 & u4.__u ? [i4] : null, f4, i4 || S(u4), 32 & u4.__u, o4), r4.__v = u4.__v, r4.__.__k[r4.__i] = r4, E(f4, r4, o4), u4.__ = u4.__e = null, r4.__e != i4 && j(r4));
}
function j(n4) {
  if ((n4 = n4.__) && n4.__c && !n4.props.__P) return n4.__e = null, n4.__k.some(function(t5) {
    return t5 && (n4.__e = t5.__e);
  }), j(n4);
}
function L(t5) {
  (8 & t5.__g || (t5.__g |= 8, u.push(t5), f++)) && i == n.debounceRendering || ((i = n.debounceRendering) || queueMicrotask)(H);
}
function H() {
  try {
    for (var n4, t5 = 1; u.length; ) u.length > t5 && u.sort(o), n4 = u.shift(), t5 = u.length, 8 & n4.__g && C(n4);
  } finally {
    (f = u.length) && (i || queueMicrotask)(H);
  }
}
function I(n4, t5, r4, u4, i4, f4, o4, e4, l4, c4, a4) {
  var s4, h4, v5, w5, d5, _4, g5 = u4.__k || y, k5 = t5.length;
  for (l4 = q(r4, t5, g5, l4, k5), s4 = 0; s4 < k5; s4++) null != (v5 = r4.__k[s4]) && (h4 = ~v5.__i && g5[v5.__i] || p, v5.__i = s4, _4 = z(n4, v5, h4, i4, f4, o4, e4, l4, c4, a4), w5 = v5.__e, (h4.ref != v5.ref || 8 & h4.__u) && (h4.ref && G(h4.ref, null, v5, h4), v5.ref && a4.push(v5.ref, v5.__c || w5, v5)), d5 = d5 || w5, 4 & v5.__u ? (l4 = A(v5, l4, n4, !h4.__v), h4.__e && (h4.__e = null)) : "function" == typeof v5.type && void 0 !== _4 ? l4 = _4 : w5 && (l4 = w5.nextSibling), v5.__u &= -21);
  return r4.__e = d5, l4;
}
function q(n4, t5, r4, u4, i4) {
  var f4, o4, e4, l4, c4, a4, s4, p5, y5, v5 = r4.length, d5 = v5, _4 = 0, g5 = 0, k5 = n4.__k = Array(i4);
  for (f4 = 0; f4 < i4; f4++) null != (o4 = t5[f4]) && "boolean" != typeof o4 && "function" != typeof o4 ? ("object" != typeof o4 || o4.constructor === String ? o4 = k5[f4] = m(null, o4) : w(o4) ? o4 = k5[f4] = m($, { children: o4 }) : o4.constructor === h && o4.__b ? o4 = k5[f4] = m(o4.type, o4.props, o4.key, o4.ref, o4.__v) : k5[f4] = o4, l4 = f4 + _4, o4.__ = n4, o4.__b = n4.__b + 1, e4 = null, ~(c4 = o4.__i = P(o4, r4, l4, d5)) && (d5--, (e4 = r4[c4]) && (e4.__u |= 2)), e4 && e4.__v ? (o4.__u |= 16, c4 == l4 - 1 ? _4-- : c4 == l4 + 1 ? _4++ : c4 != l4 && (c4 > l4 ? _4-- : _4++, g5 = 1)) : (~c4 || (i4 > v5 ? _4-- : i4 < v5 && _4++), "function" != typeof o4.type && (o4.__u |= 4))) : k5[f4] = null;
  if (g5) {
    for (a4 = [], s4 = [], f4 = 0; f4 < i4; f4++) if ((o4 = k5[f4]) && 16 & o4.__u) {
      for (_4 = 0, p5 = a4.length; _4 < p5; ) a4[y5 = _4 + p5 >> 1] < o4.__i ? _4 = y5 + 1 : p5 = y5;
      a4[_4] = o4.__i, s4[f4] = _4 + 1;
    }
    for (_4 = a4.length; f4--; ) s4[f4] && (s4[f4] == _4 ? _4-- : k5[f4].__u |= 4);
  }
  if (d5) for (f4 = 0; f4 < v5; f4++) !(e4 = r4[f4]) || 2 & e4.__u || (e4.__e == u4 && (u4 = S(e4)), J(e4, e4));
  return u4;
}
function A(n4, t5, r4, u4) {
  var i4, f4, o4, e4;
  if ("function" == typeof n4.type) {
    if (n4.props.__P) return t5;
    if (i4 = n4.__k) for (f4 = 0; f4 < i4.length; f4++) i4[f4] && (i4[f4].__ = n4, t5 = A(i4[f4], t5, r4, false));
    return t5;
  }
  for (t5 && !t5.parentNode && (t5 = S(n4)) && !t5.parentNode && (t5 = null), o4 = n4.__e, e4 = t5; e4 && 8 == e4.nodeType; ) e4 = e4.nextSibling;
  for (o4 != e4 && (!u4 && r4.moveBefore && o4.parentNode ? r4.moveBefore(o4, t5) : r4.insertBefore(o4, t5 || null)), t5 = o4; (t5 = t5 && t5.nextSibling) && 8 == t5.nodeType && !t5.data.startsWith("$s"); ) ;
  return t5;
}
function P(n4, t5, r4, u4) {
  var i4, f4 = n4.key, o4 = n4.type, e4 = t5[r4], l4 = e4 && !(2 & e4.__u);
  if (null === e4 && null == f4 || l4 && f4 == e4.key && o4 == e4.type) return r4;
  if (u4 > (l4 ? 1 : 0)) {
    for (i4 = r4 - 1; i4 >= 0; i4--) if ((e4 = t5[i4]) && !(2 & e4.__u) && f4 == e4.key && o4 == e4.type) return i4;
    for (i4 = r4 + 1; i4 < t5.length; i4++) if ((e4 = t5[i4]) && !(2 & e4.__u) && f4 == e4.key && o4 == e4.type) return i4;
  }
  return -1;
}
function T(n4, t5, r4) {
  null == r4 && (r4 = ""), "-" == t5[0] ? n4.setProperty(t5, r4) : n4[t5] = r4;
}
function N(n4, t5, r4, u4, i4) {
  var f4, o4;
  if ("style" == t5) if ("string" == typeof r4) n4.style.cssText = r4;
  else {
    if ("string" == typeof u4 && (n4.style.cssText = u4 = ""), u4) for (t5 in u4) r4 && t5 in r4 || T(n4.style, t5);
    if (r4) for (t5 in r4) u4 && r4[t5] == u4[t5] || T(n4.style, t5, r4[t5]);
  }
  else if ("o" == t5[0] && "n" == t5[1]) "function" != typeof r4 && (r4 = null), "function" != typeof u4 && (u4 = null), (n4.__e || (n4.__e = {}))[t5] = r4, r4 && u4 || (o4 = a[t5] || (a[t5] = V(t5)), (n4.__a || (n4.__a = {}))[t5] = c, f4 = t5 != (t5 = t5.replace(l, "$1")), (t5 = t5.slice(2))[0] < "a" && (t5 = t5.toLowerCase()), r4 ? n4.addEventListener(t5, o4, f4) : n4.removeEventListener(t5, o4, f4));
  else {
    if ("http://www.w3.org/2000/svg" == i4) t5 = t5.replace(/xlink(H|:h)/, "h").replace(/sName$/, "s");
    else if ("width" != t5 && "height" != t5 && "href" != t5 && "list" != t5 && "form" != t5 && "tabIndex" != t5 && "download" != t5 && "rowSpan" != t5 && "colSpan" != t5 && "role" != t5 && "popover" != t5 && t5 in n4) try {
      return void (n4[t5] = null == r4 ? "" : r4);
    } catch (n5) {
    }
    if ("function" == typeof r4) return;
    null == r4 || false === r4 && "-" != t5[4] ? n4.removeAttribute(t5) : n4.setAttribute(t5, "popover" == t5 && 1 == r4 ? "" : r4);
  }
}
function V(t5) {
  return function(r4) {
    var u4 = this.__e;
    if (u4) {
      if (u4 = u4[t5], null == r4[e]) r4[e] = c++;
      else if (r4[e] < this.__a[t5]) return;
      return u4(n.event ? n.event(r4) : r4);
    }
  };
}
function z(t5, r4, u4, i4, f4, o4, e4, l4, c4, a4) {
  var s4, p5, v5, d5, k5, b4, m5, M2, C3, j3, L2, H2, q2, A4, O2, P2, T3, N2, V2 = r4.type;
  if (r4.constructor !== h) return null;
  128 & u4.__u && (c4 = 32 & u4.__u, s4 = u4.__c.__z) && (r4.__u |= c4, p5 = o4 = [], 8 == s4.nodeType ? l4 = B(s4, o4) : o4.push(s4), l4 = o4[0] || l4), (s4 = n.__b) && s4(r4);
  n: if ("function" == typeof V2) {
    v5 = e4.length;
    try {
      if (M2 = r4.props, C3 = (s4 = V2.prototype) && s4.render, j3 = (s4 = V2.contextType) && i4[s4.__c], L2 = s4 ? j3 ? j3.props.value : s4.__ : i4, (d5 = u4.__c) ? (r4.__c = d5, 2 & d5.__g && (d5.__g |= 1)) : (C3 ? r4.__c = d5 = new V2(M2, L2) : (r4.__c = d5 = new x(M2, L2), d5.constructor = V2, d5.render = K), j3 && j3.sub(d5), d5.state || (d5.state = {}), d5.__n = i4, d5.__g |= 8, d5.__h = [], d5.__k = []), C3 && (d5.__s || (d5.__s = d5.state), V2.getDerivedStateFromProps && (d5.__s == d5.state && (d5.__s = _({}, d5.__s)), _(d5.__s, V2.getDerivedStateFromProps(M2, d5.__s)))), k5 = d5.props, b4 = d5.state, d5.__v = r4, u4.__c) {
        if (M2 !== k5 && C3 && !V2.getDerivedStateFromProps && d5.componentWillReceiveProps && d5.componentWillReceiveProps(M2, L2), r4.__v == u4.__v && !(8 & d5.__g) || !(4 & d5.__g) && d5.shouldComponentUpdate && false === d5.shouldComponentUpdate(M2, d5.__s, L2)) {
          r4.__v != u4.__v && (d5.props = M2, d5.state = d5.__s, d5.__g &= -9), r4.__e = u4.__e, r4.__k = u4.__k, r4.__k.some(function(n4) {
            n4 && (n4.__ = r4);
          }), y.push.apply(d5.__h, d5.__k), d5.__k = [], d5.__h.length && e4.push(d5), l4 = S(u4);
          break n;
        }
        d5.componentWillUpdate && d5.componentWillUpdate(M2, d5.__s, L2), C3 && d5.componentDidUpdate && d5.__h.push(function() {
          d5.componentDidUpdate(k5, b4, m5);
        });
      } else C3 && !V2.getDerivedStateFromProps && d5.componentWillMount && d5.componentWillMount(), C3 && d5.componentDidMount && d5.__h.push(d5.componentDidMount);
      d5.context = L2, d5.props = M2, d5.__P = t5, d5.__g &= -5, H2 = n.__r, q2 = C3 ? 25 : 0;
      do {
        d5.__g &= -9, H2 && H2(r4), s4 = d5.render(d5.props, d5.state = d5.__s, d5.context);
      } while (8 & d5.__g && ++q2 < 25);
      C3 && (y.push.apply(d5.__h, d5.__k), d5.__k = []), d5.state = d5.__s, d5.getChildContext && (i4 = _({}, i4, d5.getChildContext())), C3 && u4.__c && d5.getSnapshotBeforeUpdate && (m5 = d5.getSnapshotBeforeUpdate(k5, b4)), A4 = s4 && s4.type === $ && null == s4.key ? s4.props.children : s4, M2.__P && (s4 = l4, f4 = (t5 = M2.__P).namespaceURI, c4 = o4 = null, u4.props && u4.props.__P != t5 && (u4.__k.some(function(n4) {
        n4 && J(n4, n4);
      }), u4.__k = null), l4 = u4.__k ? S(u4, 0) : null), l4 = I(t5, w(A4) ? A4 : [A4], r4, u4, i4, f4, o4, e4, l4, c4, a4), M2.__P && (r4.__e = null, l4 = s4), r4.__u &= -161, p5 && p5.some(g), d5.__h.length && e4.push(d5), 1 & d5.__g && (d5.__g &= -4);
    } catch (t6) {
      if (e4.length = v5, r4.__v = null, c4 || o4) if (t6 && t6.then) {
        if (r4.__u |= 128 | c4, o4) {
          for (~(T3 = o4.indexOf(l4 || void 0)) || (T3 = o4.length); (N2 = o4[T3 - 1]) && 8 == N2.nodeType; ) T3--;
          for (; T3 < o4.length; T3++) if (N2 = o4[T3]) if (o4[T3] = null, O2) {
            if (N2 == P2) break;
          } else {
            if (8 != N2.nodeType) break;
            N2.data.startsWith("$s") && (P2 = B(O2 = N2));
          }
        }
        if (!O2) {
          for (; l4 && 8 == l4.nodeType && l4.nextSibling; ) l4 = l4.nextSibling;
          O2 = l4;
        }
        (s4 = B(O2 = r4.__c.__z || (r4.__c.__z = O2))) ? (r4.__e = O2, l4 = s4) : r4.__e = l4, l4 = l4 && l4.nextSibling;
      } else o4 && o4.some(g);
      else r4.__e = u4.__e;
      r4.__k || (r4.__k = u4.__k || []), t6 && t6.then || D(r4), n.__e(t6, r4, u4);
    }
  } else l4 = r4.__e = F(u4.__e, r4, u4, i4, f4, o4, e4, c4, a4, t5);
  return (s4 = n.diffed) && s4(r4), l4;
}
function B(n4, t5) {
  if (n4 && 8 == n4.nodeType && n4.data.startsWith("$s")) for (var r4 = 1; n4 = n4.nextSibling; ) {
    if (8 == n4.nodeType) {
      if (n4.data.startsWith("$s")) r4++;
      else if (n4.data.startsWith("/$s") && !--r4) return n4;
    }
    t5 && t5.push(n4);
  }
}
function D(n4) {
  n4 && (n4.__c && (n4.__c.__g |= 4), n4.__k && n4.__k.some(D));
}
function E(t5, r4, u4) {
  for (var i4 = 0; i4 < u4.length; ) G(u4[i4++], u4[i4++], u4[i4++]);
  n.__c && n.__c(r4, t5), t5.some(function(r5) {
    try {
      t5 = r5.__h, r5.__h = [], t5.some(function(n4) {
        n4.call(r5);
      });
    } catch (t6) {
      n.__e(t6, r5.__v);
    }
  });
}
function F(t5, r4, u4, i4, f4, o4, e4, l4, c4, a4) {
  var s4, h4, y5, _4, k5, b4, m5, M2, $2 = u4.props || p, x3 = r4.props, C3 = r4.type;
  if ("svg" == C3 ? f4 = "http://www.w3.org/2000/svg" : "math" == C3 ? f4 = "http://www.w3.org/1998/Math/MathML" : f4 || (f4 = "http://www.w3.org/1999/xhtml"), o4) {
    for (s4 = 0; s4 < o4.length; s4++) if ((k5 = o4[s4]) && (C3 ? k5.localName == C3 : 3 == k5.nodeType)) {
      t5 = k5, o4[s4] = null;
      break;
    }
  }
  if (!t5) {
    if (M2 = a4.ownerDocument || document, !C3) return M2.createTextNode(x3);
    t5 = M2.createElementNS(f4, C3, x3.is ? x3 : a4), l4 && (n.__m && n.__m(r4, o4), l4 = false), o4 = null;
  }
  if (C3) {
    if (a4 = "template" == C3 && t5.content || t5, o4 = "textarea" == C3 && null != x3.defaultValue ? null : o4 && d.call(a4.childNodes), !l4 && o4) for ($2 = {}, s4 = 0; s4 < t5.attributes.length; s4++) $2[(k5 = t5.attributes[s4]).name] = k5.value;
    for (s4 in $2) k5 = $2[s4], "dangerouslySetInnerHTML" == s4 ? y5 = k5 : "children" == s4 || s4 in x3 || "value" == s4 && "defaultValue" in x3 || "checked" == s4 && "defaultChecked" in x3 || N(t5, s4, null, k5, f4);
    for (s4 in x3) k5 = x3[s4], "children" == s4 ? _4 = k5 : "dangerouslySetInnerHTML" == s4 ? h4 = k5 : "value" == s4 ? b4 = k5 : "checked" == s4 ? m5 = k5 : l4 && "function" != typeof k5 || $2[s4] === k5 || N(t5, s4, k5, $2[s4], f4);
    h4 ? (l4 || y5 && (h4.__html == y5.__html || h4.__html == t5.innerHTML) || (t5.innerHTML = h4.__html), r4.__k = []) : (y5 && (t5.textContent = ""), ("foreignObject" == C3 || "http://www.w3.org/1998/Math/MathML" == f4 && v.test(C3)) && (f4 = "http://www.w3.org/1999/xhtml"), I(a4, w(_4) ? _4 : [_4], r4, u4, i4, f4, o4, e4, o4 ? o4[0] : u4.__k && S(u4, 0), l4, c4), o4 && o4.some(g)), l4 && "textarea" != C3 || (s4 = "value", "progress" == C3 && null == b4 ? t5.removeAttribute(s4) : null == b4 || b4 === t5[s4] && ("progress" != C3 || b4) || N(t5, s4, b4, $2[s4], f4), s4 = "checked", null != m5 && m5 != t5[s4] && N(t5, s4, m5, $2[s4], f4));
  } else $2 === x3 || l4 && t5.data == x3 || (t5.data = x3);
  return t5;
}
function G(t5, r4, u4, i4) {
  try {
    "function" == typeof t5 ? r4 ? r4.__x = t5(r4) || 1 : i4 && (i4 = i4.__c || i4.__e) && (r4 = i4.__x) && (i4.__x = null, "function" == typeof r4 ? r4() : t5(null)) : t5.current = r4;
  } catch (t6) {
    n.__e(t6, u4);
  }
}
function J(t5, r4, u4) {
  var i4, f4, o4, e4;
  if (n.unmount && n.unmount(t5), !(i4 = t5.ref) || i4.current && i4.current != t5.__e || G(i4, null, r4, t5), i4 = t5.__c) {
    if (i4.componentWillUnmount) try {
      i4.componentWillUnmount();
    } catch (t6) {
      n.__e(t6, r4);
    }
    i4.__P = i4.__n = null;
  }
  if (i4 = t5.__k) for (e4 = 0; e4 < i4.length; e4++) i4[e4] && J(i4[e4], r4, "function" != typeof t5.type || u4 && !t5.props.__P);
  !u4 && (i4 = t5.__c) && (i4 = i4.__z) && (f4 = B(i4, o4 = [])) && (i4 == t5.__e && o4.some(g), g(f4), g(i4)), u4 || g(t5.__e), t5.__e = t5.__c = t5.__ = null;
}
function K(n4, t5, r4) {
  return this.constructor(n4, r4);
}
function Q(t5, r4) {
  var u4, i4, f4, o4;
  n.__ && n.__(t5, r4), 9 == r4.nodeType && (r4 = r4.documentElement), i4 = (u4 = t5 && 32 & t5.__u) ? null : r4.__k, r4.__k = m($, { children: [t5] }), f4 = [], o4 = [], z(r4, r4.__k, i4 || p, p, r4.namespaceURI, i4 ? null : r4.firstChild ? d.call(r4.childNodes) : null, f4, i4 ? i4.__e : r4.firstChild, u4, o4), E(f4, r4.__k, o4), r4.__k.props.children = null;
}
n = { __e: function(n4, t5, r4, u4) {
  for (var i4, o4, e4; t5 = t5.__; ) if ((i4 = t5.__c) && !(1 & i4.__g)) {
    i4.__g |= 4;
    try {
      if ((e4 = (o4 = i4.constructor) && o4.getDerivedStateFromError) && i4.setState(o4.getDerivedStateFromError(n4)), i4.componentDidCatch && (i4.componentDidCatch(n4, u4 || {}), e4 = 1), e4 && 8 & i4.__g) return void (i4.__g |= 2);
    } catch (t6) {
      n4 = t6;
    }
  }
  throw f = 0, n4;
} }, t = 0, r = function(n4) {
  return null != n4 && n4.constructor === h;
}, x.prototype.setState = function(n4, t5) {
  var r4 = this.__s;
  r4 && r4 != this.state || (r4 = this.__s = _({}, this.state)), "function" == typeof n4 && (n4 = n4(_({}, r4), this.props)), n4 && (_(r4, n4), this.__v && (t5 && this.__k.push(t5), L(this)));
}, x.prototype.forceUpdate = function(n4) {
  this.__v && (this.__g |= 4, n4 && this.__h.push(n4), L(this));
}, x.prototype.render = $, u = [], f = 0, o = function(n4, t5) {
  return n4.__v.__b - t5.__v.__b;
}, e = /* @__PURE__ */ Symbol(), l = /(PointerCapture)$|Capture$/i, c = 0, a = {}, s = 0;

// vendor/hooks.js
var t2;
var r2;
var u2;
var i2;
var o2 = Object.is;
var f2 = 0;
var c2 = [];
var e2 = [];
var a2 = n;
var v2 = a2.__b;
var l2 = a2.__r;
var m2 = a2.diffed;
var h2 = a2.__c;
var s2 = a2.unmount;
var p2 = a2.__;
function y2(n4, t5) {
  a2.__h && a2.__h(r2, n4, f2 || t5), f2 = 0;
  var u4 = r2.__H || (r2.__H = { __: [], __h: [] });
  return n4 >= u4.__.length && u4.__.push({}), u4.__[n4];
}
function d2(n4) {
  return f2 = 1, _2(G2, n4);
}
function _2(n4, u4, i4) {
  var f4 = y2(t2++, 2);
  if (f4.t = n4, !f4.__c && (f4.__ = [i4 ? i4(u4) : G2(void 0, u4), function(n5) {
    var t5 = (f4.__N || f4.__)[0], r4 = f4.t(t5, n5);
    o2(t5, r4) || (f4.__N = [r4, f4.__[1]], f4.__c.setState({}));
  }], f4.__c = r2, !r2.__f)) {
    r2.__f = true;
    var c4 = r2.shouldComponentUpdate;
    r2.shouldComponentUpdate = function(n5, t5, r4) {
      var u5 = this.__H;
      if (!u5) return true;
      var i5 = false, f5 = this.props != n5;
      if (u5.__.some(function(n6) {
        n6.__N && (i5 = true, o2(n6.__[0], n6.__N[0]) || (f5 = true));
      }), c4) {
        var e4 = c4.call(this, n5, t5, r4);
        return i5 ? e4 || f5 : e4;
      }
      return !i5 || f5;
    };
  }
  return f4.__;
}
function A2(n4, u4) {
  var i4 = y2(t2++, 3);
  !a2.__s && E2(i4.__H, u4) && (i4.__P = true, i4.__ = n4, i4.u = u4, r2.__H.__h.push(i4));
}
function F2(n4, u4) {
  var i4 = y2(t2++, 4);
  !a2.__s && E2(i4.__H, u4) && (i4.__P = false, i4.__ = n4, i4.u = u4, r2.__h.push(i4));
}
function T2(n4) {
  return f2 = 5, w2(function() {
    return { current: n4 };
  }, []);
}
function w2(n4, r4) {
  var u4 = y2(t2++, 7);
  return E2(u4.__H, r4) && (u4.__ = n4(), u4.__H = r4), u4.__;
}
function g2() {
  var n4;
  do {
    for (; n4 = e2.shift(); ) try {
      C2(n4);
    } catch (t6) {
      a2.__e(t6, { __: (n4 = n4.__P) && n4.__v });
    }
    for (; n4 = c2.shift(); ) {
      var t5 = n4.__H;
      if (n4.__P && t5) try {
        t5.__h.some(C2), t5.__h.some(D2), t5.__h = [];
      } catch (r4) {
        t5.__h = [], a2.__e(r4, n4.__v);
      }
    }
  } while (e2.length);
}
a2.__b = function(n4) {
  r2 = null, v2 && v2(n4);
}, a2.__ = function(n4, t5) {
  n4 && t5.__k && t5.__k.__m && (n4.__m = t5.__k.__m), p2 && p2(n4, t5);
}, a2.__r = function(n4) {
  l2 && l2(n4), t2 = 0;
  var i4 = (r2 = n4.__c).__H;
  i4 && (u2 == r2 ? r2.__h = [] : (i4.__h.some(C2), i4.__h.some(D2), t2 = 0), i4.__h = [], i4.__.some(function(n5) {
    n5.__N && (n5.__ = n5.__N), n5.u = n5.__N = void 0;
  })), u2 = r2;
}, a2.diffed = function(n4) {
  m2 && m2(n4);
  var t5 = n4.__c;
  t5 && t5.__H && (t5.__H.__h.length && B2(c2.push(t5)), t5.__H.__.some(function(n5) {
    n5.u && (n5.__H = n5.u);
  })), u2 = r2 = null;
}, a2.__c = function(n4, t5) {
  t5.some(function(n5) {
    try {
      n5.__h.some(C2), n5.__h = n5.__h.filter(function(n6) {
        return !n6.__ || D2(n6);
      });
    } catch (t6) {
      n5.__h = [function() {
        throw t6;
      }];
    }
  }), h2 && h2(n4, t5);
}, a2.unmount = function(n4) {
  s2 && s2(n4);
  var t5, r4, u4 = n4.__c;
  u4 && u4.__H && (u4.__H.__.some(function(u5) {
    try {
      if (u5.__P && u5.__c) {
        if (void 0 === r4) {
          for (r4 = n4.__; r4 && (!r4.__c || !r4.__c.__P); ) r4 = r4.__;
          r4 = r4 && r4.__c;
        }
        u5.__P = r4, B2(e2.push(u5));
      } else C2(u5);
    } catch (n5) {
      t5 = n5;
    }
  }), u4.__H = void 0, t5 && a2.__e(t5, u4.__v));
};
var k2 = "function" == typeof requestAnimationFrame;
function z2(n4) {
  var t5, r4 = function() {
    clearTimeout(u4), k2 && cancelAnimationFrame(t5), setTimeout(n4);
  }, u4 = setTimeout(r4, 35);
  k2 && (t5 = requestAnimationFrame(r4));
}
function B2(n4) {
  1 != n4 && i2 == a2.requestAnimationFrame || ((i2 = a2.requestAnimationFrame) || z2)(g2);
}
function C2(n4) {
  var t5 = r2, u4 = n4.__c;
  "function" == typeof u4 && (n4.__c = void 0, u4()), r2 = t5;
}
function D2(n4) {
  var t5 = r2;
  n4.__c = n4.__(), r2 = t5;
}
function E2(n4, t5) {
  return !n4 || n4.length != t5.length || t5.some(function(t6, r4) {
    return !o2(t6, n4[r4]);
  });
}
function G2(n4, t5) {
  return "function" == typeof t5 ? t5(n4) : t5;
}

// vendor/htm.js
var n2 = function(t5, s4, r4, e4) {
  var u4;
  s4[0] = 0;
  for (var h4 = 1; h4 < s4.length; h4++) {
    var p5 = s4[h4++], a4 = s4[h4] ? (s4[0] |= p5 ? 1 : 2, r4[s4[h4++]]) : s4[++h4];
    3 === p5 ? e4[0] = a4 : 4 === p5 ? e4[1] = Object.assign(e4[1] || {}, a4) : 5 === p5 ? (e4[1] = e4[1] || {})[s4[++h4]] = a4 : 6 === p5 ? e4[1][s4[++h4]] += a4 + "" : p5 ? (u4 = t5.apply(a4, n2(t5, a4, r4, ["", null])), e4.push(u4), a4[0] ? s4[0] |= 2 : (s4[h4 - 2] = 0, s4[h4] = u4)) : e4.push(a4);
  }
  return e4;
};
var t3 = /* @__PURE__ */ new Map();
function htm_default(s4) {
  var r4 = t3.get(this);
  return r4 || (r4 = /* @__PURE__ */ new Map(), t3.set(this, r4)), (r4 = n2(this, r4.get(s4) || (r4.set(s4, r4 = (function(n4) {
    for (var t5, s5, r5 = 1, e4 = "", u4 = "", h4 = [0], p5 = function(n5) {
      1 === r5 && (n5 || (e4 = e4.replace(/^\s*\n\s*|\s*\n\s*$/g, ""))) ? h4.push(0, n5, e4) : 3 === r5 && (n5 || e4) ? (h4.push(3, n5, e4), r5 = 2) : 2 === r5 && "..." === e4 && n5 ? h4.push(4, n5, 0) : 2 === r5 && e4 && !n5 ? h4.push(5, 0, true, e4) : r5 >= 5 && ((e4 || !n5 && 5 === r5) && (h4.push(r5, 0, e4, s5), r5 = 6), n5 && (h4.push(r5, n5, 0, s5), r5 = 6)), e4 = "";
    }, a4 = 0; a4 < n4.length; a4++) {
      a4 && (1 === r5 && p5(), p5(a4));
      for (var l4 = 0; l4 < n4[a4].length; l4++) t5 = n4[a4][l4], 1 === r5 ? "<" === t5 ? (p5(), h4 = [h4], r5 = 3) : e4 += t5 : 4 === r5 ? "--" === e4 && ">" === t5 ? (r5 = 1, e4 = "") : e4 = t5 + e4[0] : u4 ? t5 === u4 ? u4 = "" : e4 += t5 : '"' === t5 || "'" === t5 ? u4 = t5 : ">" === t5 ? (p5(), r5 = 1) : r5 && ("=" === t5 ? (r5 = 5, s5 = e4, e4 = "") : "/" === t5 && (r5 < 5 || ">" === n4[a4][l4 + 1]) ? (p5(), 3 === r5 && (h4 = h4[0]), r5 = h4, (h4 = h4[0]).push(2, 0, r5), r5 = 0) : " " === t5 || "	" === t5 || "\n" === t5 || "\r" === t5 ? (p5(), r5 = 2) : e4 += t5), 3 === r5 && "!--" === e4 && (r5 = 4, h4 = h4[0]);
    }
    return p5(), h4;
  })(s4)), r4), arguments, [])).length > 1 ? r4 : r4[0];
}

// vendor/signals-core.js
var t4 = /* @__PURE__ */ Symbol.for("preact-signals");
function i3() {
  if (e3 > 1) {
    e3--;
    return;
  }
  let t5, i4 = false;
  !(function() {
    let t6 = h3;
    h3 = void 0;
    while (void 0 !== t6) {
      const i5 = t6.S;
      if (i5.v === t6.v) {
        for (let n4 = i5.t; void 0 !== n4; n4 = n4.x) if (n4.i === t6.i) n4.i = i5.i;
      }
      t6 = t6.o;
    }
  })();
  while (void 0 !== r3) {
    let n4 = r3;
    r3 = void 0;
    c3++;
    while (void 0 !== n4) {
      const o4 = n4.u;
      n4.u = void 0;
      n4.f &= -3;
      if (!(8 & n4.f) && w3(n4)) try {
        n4.c();
      } catch (n5) {
        if (!i4) {
          t5 = n5;
          i4 = true;
        }
      }
      n4 = o4;
    }
  }
  c3 = 0;
  e3--;
  if (i4) throw t5;
}
function n3(t5) {
  if (e3 > 0) return t5();
  d3 = ++u3;
  e3++;
  try {
    return t5();
  } finally {
    i3();
  }
}
var o3;
var s3;
var r3;
function f3(t5) {
  const i4 = o3, n4 = s3;
  o3 = void 0;
  s3 = void 0;
  try {
    return t5();
  } finally {
    o3 = i4;
    s3 = n4;
  }
}
var h3;
var e3 = 0;
var c3 = 0;
var u3 = 0;
var d3 = 0;
var v3 = 0;
function l3(t5) {
  if (void 0 === o3) return;
  let i4 = t5.n;
  if (void 0 === i4 || i4.t !== o3) {
    i4 = { i: 0, S: t5, p: o3.s, n: void 0, t: o3, e: void 0, x: void 0, r: i4 };
    if (void 0 !== o3.s) o3.s.n = i4;
    o3.s = i4;
    t5.n = i4;
    if (32 & o3.f) t5.S(i4);
    return i4;
  } else if (-1 === i4.i) {
    i4.i = 0;
    if (void 0 !== i4.n) {
      i4.n.p = i4.p;
      if (void 0 !== i4.p) i4.p.n = i4.n;
      i4.p = o3.s;
      i4.n = void 0;
      o3.s.n = i4;
      o3.s = i4;
    }
    return i4;
  }
}
function y3(t5, i4) {
  this.v = t5;
  this.i = 0;
  this.n = void 0;
  this.t = void 0;
  this.l = 0;
  this.W = null == i4 ? void 0 : i4.watched;
  this.Z = null == i4 ? void 0 : i4.unwatched;
  this.name = null == i4 ? void 0 : i4.name;
}
y3.prototype.brand = t4;
y3.prototype.h = function() {
  return true;
};
y3.prototype.S = function(t5) {
  const i4 = this.t;
  if (i4 !== t5 && void 0 === t5.e) {
    t5.x = i4;
    this.t = t5;
    if (void 0 !== i4) i4.e = t5;
    else f3(() => {
      var t6;
      null == (t6 = this.W) || t6.call(this);
    });
  }
};
y3.prototype.U = function(t5) {
  if (void 0 !== this.t) {
    const i4 = t5.e, n4 = t5.x;
    if (void 0 !== i4) {
      i4.x = n4;
      t5.e = void 0;
    }
    if (void 0 !== n4) {
      n4.e = i4;
      t5.x = void 0;
    }
    if (t5 === this.t) {
      this.t = n4;
      if (void 0 === n4) f3(() => {
        var t6;
        null == (t6 = this.Z) || t6.call(this);
      });
    }
  }
};
y3.prototype.subscribe = function(t5) {
  return x2(() => {
    const i4 = this.value;
    f3(() => t5(i4));
  }, { name: "sub" });
};
y3.prototype.valueOf = function() {
  return this.value;
};
y3.prototype.toString = function() {
  return this.value + "";
};
y3.prototype.toJSON = function() {
  return this.value;
};
y3.prototype.peek = function() {
  return f3(() => this.value);
};
Object.defineProperty(y3.prototype, "value", { get() {
  const t5 = l3(this);
  if (void 0 !== t5) t5.i = this.i;
  return this.v;
}, set(t5) {
  if (t5 !== this.v) {
    if (c3 > 100) throw new Error("Cycle detected");
    !(function(t6) {
      if (0 !== e3 && 0 === c3) {
        if (t6.l !== d3) {
          t6.l = d3;
          h3 = { S: t6, v: t6.v, i: t6.i, o: h3 };
        }
      }
    })(this);
    this.v = t5;
    this.i++;
    v3++;
    e3++;
    try {
      for (let t6 = this.t; void 0 !== t6; t6 = t6.x) t6.t.N();
    } finally {
      i3();
    }
  }
} });
function a3(t5, i4) {
  return new y3(t5, i4);
}
function w3(t5) {
  for (let i4 = t5.s; void 0 !== i4; i4 = i4.n) if (i4.S.i !== i4.i || !i4.S.h() || i4.S.i !== i4.i) return true;
  return false;
}
function b(t5) {
  for (let i4 = t5.s; void 0 !== i4; i4 = i4.n) {
    const n4 = i4.S.n;
    if (void 0 !== n4) i4.r = n4;
    i4.S.n = i4;
    i4.i = -1;
    if (void 0 === i4.n) {
      t5.s = i4;
      break;
    }
  }
}
function _3(t5) {
  let i4, n4 = t5.s;
  while (void 0 !== n4) {
    const t6 = n4.p;
    if (-1 === n4.i) {
      n4.S.U(n4);
      if (void 0 !== t6) t6.n = n4.n;
      if (void 0 !== n4.n) n4.n.p = t6;
    } else i4 = n4;
    n4.S.n = n4.r;
    if (void 0 !== n4.r) n4.r = void 0;
    n4 = t6;
  }
  t5.s = i4;
}
function j2(t5, i4) {
  y3.call(this, void 0, i4);
  this.x = t5;
  this.s = void 0;
  this.g = v3 - 1;
  this.f = 4;
}
j2.prototype = new y3();
j2.prototype.h = function() {
  this.f &= -3;
  if (1 & this.f) return false;
  if (32 == (36 & this.f)) return true;
  this.f &= -5;
  if (this.g === v3) return true;
  this.g = v3;
  this.f |= 1;
  if (this.i > 0 && !w3(this)) {
    this.f &= -2;
    return true;
  }
  const t5 = o3;
  try {
    b(this);
    o3 = this;
    const t6 = this.x();
    if (16 & this.f || this.v !== t6 || 0 === this.i) {
      this.v = t6;
      this.f &= -17;
      this.i++;
    }
  } catch (t6) {
    this.v = t6;
    this.f |= 16;
    this.i++;
  }
  o3 = t5;
  _3(this);
  this.f &= -2;
  return true;
};
j2.prototype.S = function(t5) {
  if (void 0 === this.t) {
    this.f |= 36;
    for (let t6 = this.s; void 0 !== t6; t6 = t6.n) t6.S.S(t6);
  }
  y3.prototype.S.call(this, t5);
};
j2.prototype.U = function(t5) {
  if (void 0 !== this.t) {
    y3.prototype.U.call(this, t5);
    if (void 0 === this.t) {
      this.f &= -33;
      for (let t6 = this.s; void 0 !== t6; t6 = t6.n) t6.S.U(t6);
    }
  }
};
j2.prototype.N = function() {
  if (!(2 & this.f)) {
    this.f |= 6;
    for (let t5 = this.t; void 0 !== t5; t5 = t5.x) t5.t.N();
  }
};
Object.defineProperty(j2.prototype, "value", { get() {
  if (1 & this.f) throw new Error("Cycle detected");
  const t5 = l3(this);
  this.h();
  if (void 0 !== t5) t5.i = this.i;
  if (16 & this.f) throw this.v;
  return this.v;
} });
function O(t5, i4) {
  return new j2(t5, i4);
}
function p3(t5) {
  const n4 = t5.j;
  t5.j = void 0;
  if ("function" == typeof n4) {
    e3++;
    const s4 = o3;
    o3 = void 0;
    try {
      n4();
    } catch (i4) {
      t5.f &= -2;
      t5.f |= 8;
      g3(t5);
      throw i4;
    } finally {
      o3 = s4;
      i3();
    }
  }
}
function g3(t5) {
  for (let i4 = t5.s; void 0 !== i4; i4 = i4.n) i4.S.U(i4);
  t5.x = void 0;
  t5.s = void 0;
  p3(t5);
}
function S2(t5) {
  if (o3 !== this) throw new Error("Out-of-order effect");
  _3(this);
  o3 = t5;
  this.f &= -2;
  try {
    if (8 & this.f) g3(this);
  } finally {
    i3();
  }
}
function m3(t5, i4) {
  this.x = t5;
  this.j = void 0;
  this.s = void 0;
  this.u = void 0;
  this.f = 32;
  this.name = null == i4 ? void 0 : i4.name;
  if (s3) s3.push(this);
}
m3.prototype.c = function() {
  const t5 = this.S();
  try {
    if (8 & this.f) return;
    if (void 0 === this.x) return;
    const i4 = this.x();
    if ("function" == typeof i4) this.j = i4;
  } finally {
    t5();
  }
};
m3.prototype.S = function() {
  if (1 & this.f) throw new Error("Cycle detected");
  this.f |= 1;
  this.f &= -9;
  p3(this);
  b(this);
  e3++;
  const t5 = o3;
  o3 = this;
  return S2.bind(this, t5);
};
m3.prototype.N = function() {
  if (!(2 & this.f)) {
    this.f |= 2;
    this.u = r3;
    r3 = this;
  }
};
m3.prototype.d = function() {
  this.f |= 8;
  if (!(1 & this.f)) g3(this);
};
m3.prototype.dispose = function() {
  this.d();
};
function x2(t5, i4) {
  const n4 = new m3(t5, i4);
  try {
    n4.c();
  } catch (t6) {
    n4.d();
    throw t6;
  }
  const o4 = n4.d.bind(n4);
  o4[Symbol.dispose] = o4;
  return o4;
}

// vendor/signals.js
var d4 = "undefined" != typeof window && !!window.__PREACT_SIGNALS_DEVTOOLS__;
var p4;
var m4;
var v4;
var g4 = [];
x2(function() {
  p4 = this.N;
})();
function b2(t5, i4) {
  n[t5] = i4.bind(null, n[t5] || (() => {
  }));
}
function y4(t5) {
  if (v4) {
    const t6 = v4;
    v4 = void 0;
    t6();
  }
  v4 = t5 && t5.S();
}
function w4({ data: t5 }) {
  const i4 = useSignal(t5);
  i4.name = "ReactiveDom";
  i4.value = t5;
  const [n4, e4] = w2(() => {
    let t6 = this, n5 = this.__v;
    while (n5 = n5.__) if (n5.__c) {
      n5.__c.__$f |= 4;
      break;
    }
    const e5 = O(() => {
      let t7 = i4.value.value;
      return 0 === t7 ? 0 : true === t7 ? "" : t7 || "";
    }), f4 = O(() => !Array.isArray(e5.value) && !r(e5.value)), r4 = x2(function() {
      this.N = M;
      if (f4.value) {
        const i5 = e5.value;
        if (t6.__v && t6.__v.__e && 3 === t6.__v.__e.nodeType) t6.__v.__e.data = i5;
      }
    }), u4 = this.__$u.d;
    this.__$u.d = function() {
      r4();
      u4.call(this);
    };
    return [f4, e5];
  }, []);
  return n4.value ? e4.peek() : e4.value;
}
w4.displayName = "ReactiveTextNode";
Object.defineProperties(y3.prototype, { constructor: { configurable: true, value: k($, null).constructor }, type: { configurable: true, value: w4 }, props: { configurable: true, get() {
  const t5 = this;
  return { data: { get value() {
    return t5.value;
  } } };
} }, __b: { configurable: true, value: 1 } });
b2("__b", (t5, i4) => {
  y4();
  m4 = void 0;
  if ("string" == typeof i4.type) {
    let t6, n4 = i4.props;
    for (let e4 in n4) {
      if ("children" === e4) continue;
      let o4 = n4[e4];
      if (o4 instanceof y3) {
        if (!t6) i4.__np = t6 = {};
        t6[e4] = o4;
        n4[e4] = o4.peek();
      }
    }
  }
  t5(i4);
});
b2("__r", (t5, n4) => {
  t5(n4);
  if (n4.type !== $) {
    y4();
    let t6, i4 = n4.__c;
    if (i4) {
      i4.__$f &= -2;
      t6 = i4.__$u;
      if (void 0 === t6) i4.__$u = t6 = (function(t7, i5) {
        let n5;
        x2(function() {
          n5 = this;
        }, { name: i5 });
        n5.c = t7;
        return n5;
      })(/* @__PURE__ */ (function(t7) {
        return function() {
          var i5;
          if (d4) null == (i5 = this.y) || i5.call(this);
          t7.__$f |= 1;
          t7.setState({});
        };
      })(i4), "function" == typeof n4.type ? n4.type.displayName || n4.type.name : "");
    }
    m4 = i4;
    y4(t6);
  }
});
b2("__e", (t5, i4, n4, e4) => {
  y4();
  m4 = void 0;
  t5(i4, n4, e4);
});
b2("diffed", (t5, i4) => {
  y4();
  m4 = void 0;
  let n4;
  if ("string" == typeof i4.type && (n4 = i4.__e)) {
    let t6 = i4.__np, e4 = i4.props, o4 = n4.U;
    if (o4) for (let i5 in o4) {
      let n5 = o4[i5];
      if (!(void 0 === n5 || t6 && i5 in t6)) {
        n5.d();
        o4[i5] = void 0;
      }
    }
    if (t6) {
      if (!o4) {
        o4 = {};
        n4.U = o4;
      }
      for (let i5 in t6) {
        let f4 = o4[i5], r4 = t6[i5];
        if (void 0 === f4) {
          f4 = k4(n4, i5, r4, e4);
          o4[i5] = f4;
        } else f4.o(r4, e4);
      }
    }
  }
  t5(i4);
});
function k4(t5, i4, n4, e4) {
  const o4 = i4 in t5 && void 0 === t5.ownerSVGElement, f4 = a3(n4);
  return { o: (t6, i5) => {
    f4.value = t6;
    e4 = i5;
  }, d: x2(function() {
    this.N = M;
    const n5 = f4.value.value;
    if (e4[i4] !== n5) {
      e4[i4] = n5;
      if (o4) t5[i4] = n5;
      else if (null != n5 && (false !== n5 || "-" === i4[4])) t5.setAttribute(i4, n5);
      else t5.removeAttribute(i4);
    }
  }) };
}
b2("unmount", (t5, i4) => {
  if ("string" == typeof i4.type) {
    let t6 = i4.__e;
    if (t6) {
      const i5 = t6.U;
      if (i5) {
        t6.U = void 0;
        for (let t7 in i5) {
          let n5 = i5[t7];
          if (n5) n5.d();
        }
      }
    }
    let n4 = i4.__np;
    if (n4) {
      let t7 = i4.props;
      for (let i5 in n4) t7[i5] = n4[i5];
    }
    i4.__np = void 0;
  } else {
    let t6 = i4.__c;
    if (t6) {
      t6.__$f |= 8;
      const i5 = t6.__$u;
      if (i5) {
        t6.__$u = void 0;
        i5.d();
      }
    }
  }
  t5(i4);
});
b2("__h", (t5, i4, n4, e4) => {
  if (e4 < 3) i4.__$f |= 2;
  t5(i4, n4, e4);
});
x.prototype.shouldComponentUpdate = function(t5, i4) {
  if (this.__R) return true;
  const n4 = this.__$u, e4 = n4 && void 0 !== n4.s;
  for (let t6 in i4) return true;
  if (this.__f || "boolean" == typeof this.u && true === this.u) {
    const t6 = 2 & this.__$f;
    if (!(e4 || t6 || 4 & this.__$f)) return true;
    if (1 & this.__$f) return true;
  } else {
    if (!(e4 || 4 & this.__$f)) return true;
    if (3 & this.__$f) return true;
  }
  for (let i5 in t5) if ("__source" !== i5 && t5[i5] !== this.props[i5]) return true;
  for (let i5 in this.props) if (!(i5 in t5)) return true;
  return false;
};
function useSignal(t5, i4) {
  return w2(() => a3(t5, i4), []);
}
var A3 = (t5) => {
  queueMicrotask(() => {
    queueMicrotask(t5);
  });
};
function F3() {
  n3(() => {
    let t5;
    while (t5 = g4.shift()) p4.call(t5);
  });
}
function M() {
  if (1 === g4.push(this)) (n.requestAnimationFrame || A3)(F3);
}

// lib.js
var html = htm_default.bind(k);
var useState = d2;
var useMemo = w2;

// copy.js
var ofForm = ["raw", "all", "limit", "mail"];
var ofItems = ["state", "cell", "kind", "status", "decision"];
var answers = /* @__PURE__ */ new Map();
for (const is of document.querySelectorAll("script[data-path]")) answers.set(canonical(
  /** @type {HTMLElement} */
  is.dataset.path ?? ""
), is);
var copy = JSON.parse(text("/copy") ?? "null");
function canonical(path) {
  const url = new URL(path, "http://copy");
  for (const name of ofForm) url.searchParams.delete(name);
  return url.pathname + (url.searchParams.size ? "?" + url.searchParams : "");
}
function text(path) {
  return answers.get(path)?.textContent ?? null;
}
function answered(path) {
  const { pathname, searchParams: query } = new URL(path, "http://copy");
  const [, world, of] = /^(\/api\/worlds\/[^/]+)(\/.*)$/.exec(pathname) ?? [];
  if (of === "/records") return records(world, query);
  if (of === "/cell") return cell(world, query.get("cell") ?? "", query.get("at") ?? "");
  if (of === "/cell/diff") return step(world, query.get("cell") ?? "", query.get("at") ?? "");
  if (of === "/cells" && query.get("at")) return cells(world, query.get("at") ?? "");
  return text(canonical(path)) ?? filtered(text(pathname), query);
}
function lacking(path) {
  const { pathname, searchParams: query } = new URL(path, "http://copy");
  const [, world = "", of] = /^(\/api\/worlds\/[^/]+)(\/.*)$/.exec(pathname) ?? [];
  if (copy && /^\/cells?(\/diff)?$/.test(of ?? "")) {
    const at3 = record(world, query.get("at") ?? "");
    if (at3 > copy.whole) return `a payload was redacted that cells are computed of: this copy of a world has them up to #${copy.whole}`;
    return at3 > 0 ? "there was no such cell at #" + at3 : "there is no such moment in this copy of a world";
  }
  if (of === "/series") return "this copy of a world has its meters as of its end only";
  return "this copy of a world does not hold that";
}
var exact = (of) => JSON.parse(
  of,
  /** @type {any} */
  ((_4, v5, at3) => typeof v5 === "number" && !Number.isSafeInteger(v5) && at3?.source ? (
    /** @type {any} */
    JSON.rawJSON?.(at3.source) ?? v5
  ) : v5)
);
function filtered(all2, query) {
  const wanted2 = ofItems.filter((name) => query.get(name));
  if (all2 === null || wanted2.length === 0) return null;
  const of = exact(all2);
  for (const [name, list] of Object.entries(of)) {
    if (Array.isArray(list)) of[name] = list.filter((item) => wanted2.every((of2) => query.get(of2)?.split(",").includes(item[of2])));
  }
  return JSON.stringify(of);
}
var known = [];
function all(world) {
  if (known.length === 0 && copy) known = Array.from({ length: copy.records }, (_4, i4) => JSON.parse(text(world + "/records/" + (i4 + 1)) ?? "{}"));
  return known;
}
function tells(world, r4, cell2) {
  if (r4.cells.includes(cell2)) return true;
  const cause = all(world)[r4.caused_by - 1];
  if (cause?.kind === "cell.stepped") return cause.cells.includes(cell2);
  return r4.kind === "event.dropped" && cause ? tells(world, cause, cell2) : false;
}
function records(world, query) {
  const number2 = (name) => Number(query.get(name)?.replace("#", "") ?? 0);
  const [cell2, kinds, ids, cause, before] = [query.get("cell"), query.getAll("kind").flatMap((k5) => k5.split(",")), query.get("ids"), number2("caused_by"), number2("before")];
  const fits = (r4) => r4.id > number2("after") && r4.id >= number2("from") && (!before || r4.id < before) && r4.id <= (number2("to") || Infinity) && (!cell2 || tells(world, r4, cell2)) && (kinds.length === 0 || kinds.includes(r4.kind)) && (!cause || r4.caused_by === cause);
  const found = ids ? ids.split(",").map((id) => all(world)[Number(id) - 1]) : all(world).filter(fits);
  const limit = number2("limit") || found.length;
  const page2 = before ? found.slice(-limit) : found.slice(0, limit);
  const rest = new URLSearchParams(query);
  if (page2.length > 0) rest.set(before ? "before" : "after", String(before ? page2[0].id : page2[page2.length - 1].id));
  const next = page2.length < found.length ? world + "/records?" + rest : null;
  return `{"records":[${page2.map((r4) => text(world + "/records/" + r4?.id)).join()}],"next":${JSON.stringify(next)}}`;
}
function record(world, at3) {
  if (at3 === "" || at3 === "head") return copy?.records ?? 0;
  if (/^t\d+$/.test(at3)) return all(world).findLast((r4) => r4.time <= Number(at3.slice(1)))?.id ?? 0;
  return /^#?\d+$/.test(at3) ? Number(at3.replace("#", "")) : 0;
}
function cell(world, name, moment) {
  const at3 = record(world, moment);
  const moments = text(canonical(world + "/cell?cell=" + encodeURIComponent(name)));
  if (moments === null || at3 === 0 || at3 > (copy?.whole ?? 0)) return null;
  let is = "";
  for (const [from, ...edits] of JSON.parse(moments)) {
    if (from > at3) break;
    let [next, done] = ["", 0];
    for (let i4 = 0; i4 < edits.length; i4 += 3) {
      next += is.slice(done, done + edits[i4]) + edits[i4 + 2];
      done += edits[i4] + edits[i4 + 1];
    }
    is = next + is.slice(done);
  }
  return is === "" ? null : is.replace(/"at":0}$/, `"at":${at3}}`);
}
function cells(world, moment) {
  if (record(world, moment) > (copy?.whole ?? 0)) return null;
  const names = JSON.parse(text(world + "/cells") ?? '{"cells":[]}').cells.map((c4) => c4.cell);
  const then = names.map((name) => JSON.parse(cell(world, name, moment) ?? "null")).filter(Boolean);
  return JSON.stringify({ at: record(world, moment), next: null, cells: then.map((c4) => ({ cell: c4.cell, n: c4.n, state_hash: null, mailbox: c4.mailbox_len, halted: c4.halted })) });
}
function step(world, name, moment) {
  const at3 = record(world, moment);
  const last = all(world).findLast((r4) => r4.id <= at3 && r4.kind === "cell.stepped" && r4.cells.includes(name))?.id;
  const state = (of) => exact(of > 0 && cell(world, name, String(of)) || "{}").state;
  if (cell(world, name, moment) === null) return null;
  const [a4, b4] = last === void 0 ? [at3, at3] : JSON.stringify(state(last)) === JSON.stringify(state(at3)) ? [last - 1, last] : [last, at3];
  const changes = differences("", state(a4) ?? void 0, state(b4) ?? void 0);
  return JSON.stringify({ cell: name, a: a4, b: b4, same: changes.length === 0, state: changes });
}
function differences(path, a4, b4) {
  const kind2 = (v5) => Array.isArray(v5) ? "list" : v5 !== null && typeof v5 === "object" && !/** @type {any} */
  JSON.isRawJSON?.(v5) ? "object" : "";
  if (JSON.stringify(a4) === JSON.stringify(b4)) return [];
  if (!kind2(a4) || kind2(a4) !== kind2(b4)) return [{ path, a: a4, b: b4 }];
  return [.../* @__PURE__ */ new Set([...Object.keys(a4), ...Object.keys(b4)])].flatMap((name) => differences(path + "/" + name.replace(/~/g, "~0").replace(/\//g, "~1"), Object.hasOwn(a4, name) ? a4[name] : void 0, Object.hasOwn(b4, name) ? b4[name] : void 0));
}

// api.js
var kept = "worldkernel.session";
var session = a3(
  /** @type {Session | null} */
  null
);
var ousted = a3(false);
var may = (scope) => session.value?.scopes.includes(scope) ?? false;
var dirOf = (world) => {
  const dirs = session.value?.dirs ?? {};
  return Object.hasOwn(dirs, world) ? dirs[world] : "";
};
var Problem = class extends Error {
  /** @param {number} status @param {{type?: string, title?: string, detail?: string}} body */
  constructor(status, body) {
    super(body.detail || body.title || "the server answered " + status);
    this.status = status;
    this.kind = (body.type ?? "").replace("urn:worldkernel:problem:", "");
  }
};
async function begin() {
  if (copy) {
    session.value = { token: "", name: "", scopes: ["read"], worlds: null };
    return;
  }
  const code = /^#code=([\w-]+)$/.exec(location.hash);
  if (code) history.replaceState(null, "", location.pathname);
  try {
    session.value = JSON.parse(sessionStorage.getItem(kept) ?? "null");
  } catch {
    sessionStorage.removeItem(kept);
  }
  if (code && session.value) throw new Error("you are here already: leave before you use another code");
  if (code) keep(await exchange(code[1]));
}
function keep(is) {
  ousted.value = false;
  session.value = is;
  sessionStorage.setItem(kept, JSON.stringify(is));
}
async function exchange(code) {
  const res = await fetch("/api/sessions", { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ code }) });
  if (!res.ok) throw await problemOf(res);
  return res.json();
}
async function enter(secret) {
  try {
    keep(await exchange(secret));
  } catch (err) {
    const who = await fetch("/api/whoami", { headers: { Authorization: "Bearer " + secret } });
    if (!who.ok) throw who.status === 401 ? err : await problemOf(who);
    keep({ ...await who.json(), token: secret });
  }
}
function leave() {
  const token = session.value?.token;
  forget();
  if (token) void fetch("/api/sessions", { method: "DELETE", headers: { Authorization: "Bearer " + token }, keepalive: true }).catch(() => {
  });
}
function forget() {
  sessionStorage.removeItem(kept);
  session.value = null;
}
async function problemOf(res) {
  try {
    return new Problem(res.status, await res.json());
  } catch {
    return new Problem(res.status, {});
  }
}
async function ask(path, init = {}) {
  if (copy) {
    const text3 = init.method ? null : answered(path);
    if (text3 === null) throw new Problem(404, { type: "not-in-copy", title: lacking(path) });
    return new Response(text3);
  }
  const headers = new Headers(init.headers);
  const token = session.value?.token ?? "";
  headers.set("Authorization", "Bearer " + token);
  const res = await fetch(path, { ...init, headers, cache: "no-store" });
  if (res.ok) return res;
  const problem = await problemOf(res);
  if (res.status === 401 && session.value?.token === token) {
    ousted.value = true;
    forget();
  }
  throw problem;
}
function pathOf(world, ...parts2) {
  return "/api/worlds" + [world, ...parts2].map((part) => {
    const text3 = String(part);
    if (/^\.{0,2}$/.test(text3)) throw new Problem(404, { title: "there is nothing of that name" });
    return "/" + encodeURIComponent(text3);
  }).join("");
}
async function get(path, until2) {
  return parse(await (await ask(path, { signal: until2 })).text());
}
var Exact = class {
  /** @param {string} text */
  constructor(text3) {
    this.text = text3;
  }
  toJSON() {
    return (
      /** @type {any} */
      JSON.rawJSON?.(this.text) ?? this.text
    );
  }
};
function parse(text3) {
  return JSON.parse(
    text3,
    /** @type {any} */
    ((_4, v5, at3) => {
      if (typeof v5 !== "number" || Number.isSafeInteger(v5)) return v5;
      return new Exact(at3?.source ?? "≈ " + v5);
    })
  );
}
async function post(path, body) {
  const res = await ask(path, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) });
  return res.status === 204 ? null : parse(await res.text());
}
async function bytes(path, until2) {
  const res = await ask(path, { signal: until2 });
  return copy ? fromBase64(await res.json()) : new Uint8Array(await res.arrayBuffer());
}
var fromBase64 = (text3) => Uint8Array.from(atob(text3), (c4) => c4.charCodeAt(0));
async function* followBytes(path, until2, alive) {
  for (let wait = 500; !until2.aborted && !copy; wait = Math.min(wait * 2, 15e3)) {
    try {
      const res = await ask(path(), { headers: { Accept: "text/event-stream" }, signal: until2 });
      alive(true);
      for await (const event of events(res)) {
        wait = 500;
        if (event.data) yield fromBase64(event.data);
      }
    } catch (err) {
      if (until2.aborted || err instanceof Problem && err.status === 401) return;
    }
    alive(false);
    await new Promise((done) => setTimeout(done, wait));
  }
}
async function* events(res) {
  const reader = (
    /** @type {ReadableStream<Uint8Array>} */
    res.body.pipeThrough(
      /** @type {ReadableWritablePair<string, any>} */
      new TextDecoderStream()
    ).getReader()
  );
  let rest = "";
  for (; ; ) {
    const { value, done } = await reader.read();
    if (done) return;
    const blocks = (rest + value).split("\n\n");
    rest = blocks.pop() ?? "";
    for (const block of blocks) {
      const event = {};
      for (const text3 of block.split("\n")) {
        const colon = text3.indexOf(":");
        if (colon > 0) event[text3.slice(0, colon)] = text3.slice(colon + 1).replace(/^ /, "");
      }
      yield event;
    }
  }
}

// place.js
function decoded(text3) {
  try {
    return decodeURIComponent(text3);
  } catch {
    return text3;
  }
}
function where() {
  const at3 = location.hash.startsWith("#/") ? location.hash.slice(2) : "";
  const [path, query = ""] = at3.split("?");
  const [world = "", view = ""] = path.split("/").map(decoded);
  return { world, view: view || (world ? "inbox" : "worlds"), of: Object.fromEntries(new URLSearchParams(query)) };
}
var place = a3(where());
var shown = location.hash;
function arrive() {
  if (location.hash === shown) return;
  shown = location.hash;
  place.value = where();
}
addEventListener("hashchange", arrive);
function lead(href) {
  location.hash = href;
  arrive();
}
function address(world, view, of = {}) {
  const query = new URLSearchParams();
  for (const [name, v5] of Object.entries(of)) if (v5 !== void 0 && v5 !== "") query.set(name, String(v5));
  const text3 = query.toString();
  return "#/" + encodeURIComponent(world) + (world || view === "inbox" ? "/" + view : "") + (text3 ? "?" + text3 : "");
}
function there(view, of) {
  return address(place.value.world, view, { at: place.value.of.at, ...of });
}
function go(world, view, of) {
  lead(address(world, view, of));
}
function amend(of) {
  const now = where();
  if (now.world !== place.value.world || now.view !== place.value.view) return;
  replace(here(of));
}
function replace(href) {
  history.replaceState(null, "", href);
  arrive();
}
function here(of) {
  return address(place.value.world, place.value.view, { ...place.value.of, ...of });
}

// clock.js
var clocks = a3(
  /** @type {Record<string, Clock | null>} */
  {}
);
var asked = /* @__PURE__ */ new Set();
function clockOf(world) {
  const known3 = clocks.value;
  if (Object.hasOwn(known3, world)) return known3[world];
  if (world && !asked.has(world)) {
    asked.add(world);
    get(pathOf(world, "manifest")).then((is) => {
      const of = is.manifest?.clock ?? {};
      const clock = of.mode === "real" ? { epoch: whole(of.epoch), tick: whole(of.tick) } : null;
      clocks.value = { ...clocks.value, [world]: clock };
    }).catch(() => asked.delete(world));
  }
  return null;
}
var whole = (of) => BigInt(of instanceof Exact ? of.text : of ?? 0);
var isReal = () => clockOf(place.value.world) !== null;
function when(tick, world = place.value.world) {
  const clock = clockOf(world);
  if (clock === null) return "t" + (tick instanceof Exact ? tick.text : tick);
  if (tick === 0) return "not begun";
  const ms = (clock.epoch + whole(tick) * clock.tick) / 1000000n;
  return new Date(Number(ms)).toISOString().replace(".000Z", "Z");
}
var atTick = (tick, world) => when(tick, world).replace(/^t/, "tick ");
var Tick = ({ of }) => html`<span class=${isReal() ? "n dim time" : "n dim"}>${when(of)}</span>`;

// columns.js
var Columns = class {
  constructor() {
    this.n = 0;
    this.time = new Float64Array(1024);
    this.what = new Uint16Array(1024);
    this.name = new Int32Array(1024);
    this.cell = new Int32Array(1024);
    this.cause = new Float64Array(1024);
    this.several = /* @__PURE__ */ new Map();
    this.whats = [];
    this.names = [];
    this.cells = [];
    this.known = { whats: /* @__PURE__ */ new Map(), names: /* @__PURE__ */ new Map(), cells: /* @__PURE__ */ new Map() };
  }
  /** add takes a page in; it returns how many records it has. @param {Uint8Array} page */
  add(page2) {
    const length = new DataView(page2.buffer, page2.byteOffset).getUint32(0);
    const head = JSON.parse(new TextDecoder().decode(page2.subarray(4, 4 + length)));
    const start = head.first - 1;
    if (head.records === 0 || start + head.records <= this.n) return head.records;
    this.n = start;
    this.room(start + head.records);
    let at3 = 4 + length;
    const number2 = () => {
      let n4 = 0;
      for (let of = 1; ; of *= 128) {
        const b4 = page2[at3++];
        n4 += (b4 & 127) * of;
        if (b4 < 128) return n4;
      }
    };
    const whats = this.learn("whats", head.whats);
    const names = this.learn("names", head.names);
    const cells2 = this.learn("cells", head.cells);
    const end = start + head.records;
    let tick = head.time;
    for (let i4 = start; i4 < end; i4++) this.time[i4] = tick += number2();
    for (let i4 = start; i4 < end; i4++) this.what[i4] = whats[number2()];
    for (let i4 = start; i4 < end; i4++) {
      const n4 = number2();
      this.name[i4] = n4 === 0 ? -1 : names[n4 - 1];
    }
    for (let i4 = start; i4 < end; i4++) {
      const c4 = number2();
      this.cell[i4] = c4 & 1 ? cells2[c4 >> 1] : -1;
      if (!(c4 & 1) && c4 > 0) this.several.set(i4, Array.from({ length: c4 >> 1 }, () => cells2[number2()]));
    }
    for (let i4 = start; i4 < end; i4++) {
      const before = number2();
      this.cause[i4] = before && i4 + 1 - before;
    }
    this.n = end;
    return head.records;
  }
  /** @param {'whats' | 'names' | 'cells'} kind @param {string[]} texts @returns {number[]} */
  learn(kind2, texts) {
    const known3 = this.known[kind2];
    return texts.map((text3) => {
      let at3 = known3.get(text3);
      if (at3 === void 0) {
        at3 = this[kind2].push(text3) - 1;
        known3.set(text3, at3);
      }
      return at3;
    });
  }
  /** @param {number} n */
  room(n4) {
    if (n4 <= this.time.length) return;
    const size = Math.max(n4, this.time.length * 2);
    for (
      const name of
      /** @type {const} */
      ["time", "what", "name", "cell", "cause"]
    ) {
      const was = this[name];
      const is = new /** @type {any} */
      was.constructor(size);
      is.set(was);
      this[name] = is;
    }
  }
};
var columns = a3({ of: new Columns(), version: 0 });
function track(world, alive, grown2) {
  const end = new AbortController();
  const of = new Columns();
  columns.value = { of, version: 0 };
  const changed2 = () => {
    if (!end.signal.aborted) columns.value = { of, version: columns.value.version + 1 };
  };
  const path = pathOf(world, "columns") + "?after=";
  const read = async () => {
    for (let shown2 = 0; ; ) {
      const page2 = await bytes(path + of.n, end.signal);
      if (of.add(page2) === 0) return;
      if (of.n < 2 * shown2) continue;
      changed2();
      shown2 = of.n;
    }
  };
  (async () => {
    await read().catch(() => alive(false));
    changed2();
    for await (const page2 of followBytes(() => path + of.n, end.signal, alive)) {
      of.add(page2);
      changed2();
      grown2();
    }
  })().catch(() => alive(false));
  return () => end.abort();
}

// live.js
var grown = a3(0);
var following = a3(false);
function watch(world) {
  let due = 0;
  const end = track(world, (is) => following.value = is, () => {
    due ||= setTimeout(() => {
      due = 0;
      grown.value++;
    }, 100);
  });
  return () => {
    end();
    clearTimeout(due);
    following.value = false;
  };
}
var look = 1500;
function watchAll() {
  const end = new AbortController();
  let was = "";
  (async () => {
    while (!end.signal.aborted && session.value) {
      try {
        const is = document.hidden ? was : JSON.stringify((await get("/api/worlds", end.signal)).worlds);
        following.value = true;
        if (was && is !== was) grown.value++;
        was = is;
      } catch {
        following.value = false;
      }
      await new Promise((done) => setTimeout(done, look));
    }
  })();
  return () => {
    end.abort();
    following.value = false;
  };
}
function useAnswer(path, still = false) {
  const [answer, setAnswer] = useState({ is: (
    /** @type {any} */
    null
  ), error: (
    /** @type {Error | null} */
    null
  ), of: (
    /** @type {string | null} */
    null
  ) });
  const since = still ? 0 : grown.value;
  const asks = T2({ of: (
    /** @type {string | null} */
    null
  ), end: new AbortController(), busy: false, again: false });
  A2(() => () => asks.current.end.abort(), []);
  A2(() => {
    const now = asks.current;
    if (now.of !== path) {
      now.end.abort();
      asks.current = { of: path, end: new AbortController(), busy: false, again: false };
    }
    if (path !== null) void ask2(asks.current, path, setAnswer);
  }, [path, since]);
  return answer.of === path ? answer : { is: null, error: null, of: path };
}
async function ask2(asks, path, set) {
  asks.again = true;
  if (asks.busy) return;
  asks.busy = true;
  while (asks.again && !asks.end.signal.aborted) {
    asks.again = false;
    try {
      const is = await get(path, asks.end.signal);
      if (!asks.end.signal.aborted) set(() => ({ is, error: null, of: path }));
    } catch (error) {
      if (!asks.end.signal.aborted) set((was) => ({ is: was.of === path ? was.is : null, error, of: path }));
    }
  }
  asks.busy = false;
}

// text.js
var hidden = /(?![\n\t])[\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Cn}\p{Zl}\p{Zp}]|(?! )\p{Zs}|[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\u{1d159}\u{1d173}-\u{1d17a}\u{e0100}-\u{e01ef}]|(?<=\p{M}{4})\p{M}/gu;
function spelled(text3) {
  return String(text3).replace(hidden, (c4) => "<U+" + (c4.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, "0") + ">");
}
var longest = 2e3;
var isLong = (text3, most5 = longest) => spelled(text3).length > most5;
function cut(text3, most5 = longest) {
  const shown2 = spelled(text3);
  return isLong(text3, most5) ? shown2.slice(0, most5) + " … (" + number(shown2.length - most5) + " more)" : shown2;
}
function line(value, most5 = 160) {
  const text3 = (typeof value === "string" ? value : JSON.stringify(value)) ?? "";
  const shown2 = spelled(text3.slice(0, most5).replace(/\n/g, "\\n"));
  return text3.length <= most5 ? shown2 : shown2 + " … (" + number(text3.length - most5) + " more)";
}
var [longList, deep, longName] = [200, 5, 80];
function isCut(of, depth = 0) {
  if (typeof of === "string") return isLong(of);
  if (of === null || typeof of !== "object" || of instanceof Exact) return false;
  const entries = Object.entries(of);
  return entries.length > longList || entries.length > 0 && depth > deep || entries.some(([name, v5]) => isLong(name, longName) || isCut(v5, depth + 1));
}
function Value({ of, depth = 0, whole: whole2 = false }) {
  const most5 = whole2 ? Infinity : longest;
  if (typeof of === "string") {
    return of.includes("\n") ? html`<pre class="block" tabindex="0">${cut(of, most5)}</pre>` : html`<span class="string">${cut(of, most5)}</span>`;
  }
  if (of instanceof Exact) return html`<span class="number">${of.text}</span>`;
  if (of === null || typeof of !== "object") return html`<span class=${typeof of}>${String(of)}</span>`;
  const entries = Object.entries(of);
  if (entries.length === 0) return html`<span class="empty">${Array.isArray(of) ? "none" : "{}"}</span>`;
  if (depth > deep && !whole2) return html`<span class="string">${line(of)}</span>`;
  const shown2 = whole2 ? entries : entries.slice(0, longList);
  return html`<dl class="value">
    ${shown2.map(([name, v5]) => html`<div key=${name}><dt>${cut(name, whole2 ? Infinity : longName)}:</dt><dd><${Value} of=${v5} depth=${depth + 1} whole=${whole2} /></dd></div>`)}
    ${entries.length > shown2.length && html`<div><dt>…</dt><dd>${number(entries.length - shown2.length)} more</dd></div>`}
  </dl>`;
}
function Whole({ of }) {
  const [whole2, setWhole] = useState(false);
  return html`<${Value} of=${of} whole=${whole2} />${!whole2 && isCut(of) && html`<button type="button" class="small" onClick=${() => setWhole(true)}>show all of it</button>`}`;
}
function Words({ of }) {
  const [whole2, setWhole] = useState(false);
  if (of === "") return null;
  return html`<pre class="bubble words">${cut(of, whole2 ? Infinity : longest)}</pre>${!whole2 && isLong(of) && html`<button type="button" class="small" onClick=${() => setWhole(true)}>show all of it</button>`}`;
}
function short(hash, n4 = 12) {
  return hash.slice(0, n4);
}
var digits = new Intl.NumberFormat("en");
function number(n4) {
  return digits.format(n4);
}

// parts.js
function Command({ line: short2, world = place.value.world }) {
  const dir = dirOf(world);
  const line2 = dir ? "worldctl -w " + word(dir) + short2.slice("worldctl".length) : short2;
  const [copied, setCopied] = useState(false);
  const copy2 = () => {
    void navigator.clipboard?.writeText(line2).then(() => setCopied(true));
    setTimeout(() => setCopied(false), 1500);
  };
  return html`<button class="command" type="button" onClick=${copy2} title="copy"><code>${spelled(line2)}</code><span aria-live="polite">${copied ? " copied" : ""}</span></button>`;
}
var CommandNow = ({ line: line2 }) => html`${place.value.of.at && html`<small>as of now: </small>`}<${Command} line=${line2} />`;
var beside = (world, name) => (dirOf(world) ? dirOf(world).replace(/[^/]*$/, "") : "../") + name;
function word(text3) {
  return /^[\w@%+=:,./-]+$/.test(text3) ? text3 : "'" + text3.replace(/'/g, `'\\''`) + "'";
}
function Trouble({ of }) {
  if (!of) return null;
  const kind2 = of instanceof Problem && of.kind ? of.kind : "";
  return html`<p class="trouble" role="alert">${spelled(of.message)} ${kind2 && html`<small>${kind2}</small>`}</p>`;
}
function Fact({ name, children }) {
  return html`<div class="fact"><dt>${name}</dt><dd>${children}</dd></div>`;
}
function Head({ title, about: about2, children }) {
  return html`<header class="head"><h1>${title}</h1>${about2 && html`<span class="about">${about2}</span>`}<div class="right">${children}</div></header>`;
}
var signs = {
  awaiting_approval: "◔",
  awaiting_answer: "◔",
  awaiting_confirmation: "◔",
  in_doubt: "?",
  in_flight: "→",
  open: "◇",
  committed: "■",
  failed: "✕",
  denied: "⊖",
  cancelled: "⊘"
};
function State({ of, name = of.replace("_", " ") }) {
  return html`<span class=${"state " + of}><span aria-hidden="true">${signs[
    /** @type {keyof typeof signs} */
    of
  ] ?? "•"}</span> ${name}</span>`;
}
function List({ items, chosen, label }) {
  const list = T2(
    /** @type {HTMLElement | null} */
    null
  );
  A2(() => {
    list.current?.querySelector("[aria-current=true]")?.scrollIntoView({ block: "nearest" });
  }, [chosen]);
  F2(() => {
    const walk = (e4) => {
      const step2 = { j: 1, ArrowDown: 1, k: -1, ArrowUp: -1 }[e4.key];
      if (!step2 || typing(e4) || e4.ctrlKey || e4.metaKey || e4.altKey) return;
      const is = items.findIndex((x3) => x3.id === (where().of.of ?? chosen));
      const to = items[Math.max(0, Math.min(items.length - 1, is + step2))];
      if (!to) return;
      e4.preventDefault();
      lead(to.href);
    };
    addEventListener("keydown", walk);
    return () => removeEventListener("keydown", walk);
  }, [items, chosen]);
  return html`<nav class="list" aria-label=${label} ref=${list}>
    ${items.map((x3) => html`<a key=${x3.id} href=${x3.href} aria-current=${x3.id === chosen}>${x3.body}</a>`)}
  </nav>`;
}
function typing(e4) {
  const on = (
    /** @type {HTMLElement | null} */
    e4.target
  );
  return on instanceof HTMLInputElement || on instanceof HTMLTextAreaElement || on instanceof HTMLSelectElement;
}
function useKey(key, act, on = true) {
  F2(() => {
    const pressed = (e4) => {
      if (!on || e4.key !== key || typing(e4) || e4.ctrlKey || e4.metaKey || e4.altKey) return;
      e4.preventDefault();
      act();
    };
    addEventListener("keydown", pressed);
    return () => removeEventListener("keydown", pressed);
  });
}

// moment.js
var at = () => place.value.of.at ?? "";
function recordAt(of) {
  const text3 = at();
  if (!text3) return of.n;
  const tick = /^t(\d+)$/.exec(text3);
  if (!tick) return /^#?\d+$/.test(text3) ? Number(text3.replace("#", "")) : 0;
  let low = 0;
  for (let high2 = of.n; low < high2; ) {
    const mid = low + high2 >> 1;
    if (of.time[mid] <= Number(tick[1])) low = mid + 1;
    else high2 = mid;
  }
  return low;
}
var ofMoment = (before) => at() ? before + "at=" + encodeURIComponent(at()) : "";
var withRecord = ["timeline", "records", "conversations", "history"];
function Moment() {
  const { of } = columns.value;
  const n4 = recordAt(of);
  const past = at() !== "";
  const { view } = place.value;
  const chosen = Number(place.value.of.of || 0);
  const walks = withRecord.includes(view);
  const step2 = (by) => amend({ at: Math.max(1, Math.min(of.n, n4 + by)) });
  useKey("m", () => lead(here({ at: chosen })), walks && chosen > 0);
  useKey("[", () => step2(-1), past && n4 > 0);
  useKey("]", () => step2(1), past && n4 > 0);
  const [playing, setPlaying] = useState(false);
  const ends3 = !past || n4 >= of.n;
  A2(() => {
    if (!playing || ends3) return setPlaying(false);
    const next = setTimeout(() => step2(1), 250);
    return () => clearTimeout(next);
  }, [playing, n4, ends3]);
  useKey("p", () => setPlaying(!playing), past && n4 > 0);
  useKey(".", () => lead(here({ at: "" })), past);
  if (!past) return null;
  return html`<div class="moment" role="status">
    <span>as of <a href=${there("timeline", { of: n4 || void 0 })}><b>${n4 ? "#" + n4 : spelled(at())}</b></a>${n4 > 0 && n4 <= of.n ? ` (${isReal() ? when(of.time[n4 - 1]) : `tick ${number(of.time[n4 - 1])}`})` : ""}: nothing can be decided ${view === "history" && may("admin") ? "or changed in the past; what if asks how it might have gone on" : "in the past"}</span>
    <span class="right"><button type="button" disabled=${n4 < 2} onClick=${() => step2(-1)}>earlier <kbd>[</kbd></button>
      <button type="button" disabled=${n4 >= of.n} onClick=${() => step2(1)}>later <kbd>]</kbd></button>
      <button type="button" aria-pressed=${playing} disabled=${n4 >= of.n} onClick=${() => setPlaying(!playing)}>play <kbd>p</kbd></button>
      <a href=${here({ at: "" })}>now <kbd>.</kbd></a></span>
  </div>`;
}

// decide.js
function Ways({ of, begin: begin2 }) {
  const open = at() ? [] : of.filter((way) => may(way.scope ?? "approve"));
  return html`<div class="buttons">${open.map((way) => html`<${Begin} key=${way.key} way=${way} begin=${begin2} />`)}</div>`;
}
function Begin({ way, begin: begin2 }) {
  useKey(way.key, () => begin2(way));
  return html`<button type="button" class=${way.kind} onClick=${() => begin2(way)}>${way.name} <kbd>${way.key}</kbd></button>`;
}
function Form({ world, way, about: about2, meanwhile, first: first2 = "", send, line: line2, close }) {
  const [reason, setReason] = useState("");
  const [data, setData] = useState(first2);
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState(
    /** @type {Error | null} */
    null
  );
  const form = T2(
    /** @type {HTMLElement | null} */
    null
  );
  F2(() => (
    /** @type {HTMLElement | null | undefined} */
    (form.current?.querySelector("textarea") ?? form.current?.querySelector("button"))?.focus()
  ), []);
  const ready = !busy && !meanwhile && (!way.needs || reason.trim() !== "") && (!way.field || json(data));
  const decide = async () => {
    if (!ready) return;
    setBusy(true);
    setError(null);
    try {
      await send(reason, data);
      close();
    } catch (err) {
      setError(
        /** @type {Error} */
        err
      );
      setBusy(false);
    }
    grown.value++;
  };
  const pressed = (e4) => {
    if (e4.key === "Escape") close();
    if (e4.key === "Enter" && (e4.ctrlKey || e4.metaKey)) void decide();
  };
  return html`<div class="form" role="form" aria-label=${way.name} ref=${form} onKeyDown=${pressed}>
    ${way.field && html`<label>${way.field}<textarea rows="5" spellcheck="false" value=${data} onInput=${(e4) => setData(e4.target.value)}></textarea></label>`}
    ${!way.silent && html`<label>Reason (the journal keeps it)<textarea rows="3" maxlength="4000" value=${reason} onInput=${(e4) => setReason(e4.target.value)}></textarea></label>`}
    ${meanwhile && html`<p class="trouble" role="alert">Somebody else was faster: ${meanwhile}. Nothing was sent.</p>`}
    <${Trouble} of=${error} />
    <div class="buttons">
      <button type="button" class=${"full " + way.kind} disabled=${!ready} onClick=${decide}>${way.name}: ${spelled(about2)} <kbd>ctrl ↵</kbd></button>
      <button type="button" onClick=${close}>not yet <kbd>esc</kbd></button>
    </div>
    <${Command} world=${world} line=${line2(word(reason || "…"), word(data || "…"))} />
  </div>`;
}
function json(text3) {
  try {
    JSON.parse(text3);
    return true;
  } catch {
    return false;
  }
}
var ofCells = [
  { name: "Try again", key: "r", verb: "resume", kind: "yes", needs: true },
  { name: "Skip the event", key: "s", verb: "skip", kind: "no", needs: true }
];
function Stuck({ world, of }) {
  const [whole2, setWhole] = useState(false);
  const mail = of.halted && of.mailbox[0];
  return html`<div class="whole">
    ${mail && html`<h2 class="sub">The event that it failed on: ${spelled(mail.name)}</h2><div class="box"><${Value} of=${mail.data} whole=${whole2} /></div>`}
    ${mail && isCut(mail.data) && !whole2 ? html`<${ShowAll} act=${() => setWhole(true)} />` : html`<${Resume} world=${world} of=${of} />`}
  </div>`;
}
var ShowAll = ({ act }) => html`<p><button type="button" onClick=${act}>Show all of it</button> before you decide: some of it is cut.</p>`;
function Resume({ world, of }) {
  const [form, setForm] = useState(
    /** @type {{way: Way, about: any} | null} */
    null
  );
  if (!form) return of.halted ? html`<${Ways} of=${ofCells} begin=${(way2) => setForm({ way: way2, about: of })} />` : null;
  const { way, about: about2 } = form;
  const meanwhile = !of.halted ? "it was halted, and goes on now" : of.failure?.record !== about2.failure?.record ? "it has failed at something else" : "";
  return html`<${Form} world=${world} way=${way} about=${about2.cell} meanwhile=${meanwhile} close=${() => setForm(null)}
    send=${(reason) => post(pathOf(world, "cell", way.verb), { cell: about2.cell, reason })}
    line=${(reason) => `worldctl cell ${way.verb} ${word(about2.cell)} --reason ${reason}`} />`;
}

// lanes.js
var some = 24;
var looks = [
  { test: /^event\.submitted/, shape: "input", color: "link" },
  { test: /^event\./, shape: "event", color: "event" },
  { test: /^cell\.(failed|step_failed)|^cell\.stepped fail/, shape: "bad", color: "bad", trouble: 3 },
  { test: /^cell\.stepped/, shape: "step", color: "dim" },
  { test: /^intent\.in_doubt/, shape: "doubt", color: "doubt", trouble: 4 },
  { test: /^intent\.denied/, shape: "denied", color: "bad", trouble: 2 },
  { test: /^intent\.awaiting_approval/, shape: "waits", color: "warn", trouble: 4 },
  { test: /^invocation\.finished ok/, shape: "answer", color: "good" },
  { test: /^invocation\.finished input_required/, shape: "waits", color: "warn", trouble: 4 },
  { test: /^invocation\.finished accepted/, shape: "permit", color: "dim" },
  { test: /^invocation\.finished|^intent\.ended (?!ok)/, shape: "bad", color: "bad", trouble: 2 },
  { test: /^intent\./, shape: "asks", color: "link" },
  { test: /^invocation\.late (?!ok|input_required|accepted)/, shape: "permit", color: "bad" },
  { test: /^invocation\./, shape: "permit", color: "dim" },
  { test: /^timer\./, shape: "timer", color: "event" }
];
var other = { shape: "rule", color: "doubt" };
var look2 = (what) => looks.find((l4) => l4.test.test(what)) ?? other;
function axis(of, byTick) {
  const at3 = new Float64Array(of.n + 1);
  const ticks = [];
  let place2 = 0;
  for (let i4 = 0; i4 < of.n; ) {
    let end = i4 + 1;
    while (end < of.n && of.time[end] === of.time[i4]) end++;
    const width = byTick ? Math.log2(1 + end - i4) : end - i4;
    ticks.push({ tick: of.time[i4], from: place2 });
    for (let k5 = i4; k5 < end; k5++) at3[k5] = place2 + (k5 - i4 + 0.5) * width / (end - i4);
    place2 += width;
    i4 = end;
  }
  at3[of.n] = place2;
  return { at: at3, ticks, width: place2 };
}
function first(at3, n4, place2) {
  let low = 0;
  for (let high2 = n4; low < high2; ) {
    const mid = low + high2 >> 1;
    if (at3[mid] < place2) low = mid + 1;
    else high2 = mid;
  }
  return low;
}
function wayOf(of, i4) {
  const on = new Uint8Array(of.n);
  for (let k5 = i4; k5 >= 0 && !on[k5]; k5 = of.cause[k5] - 1) on[k5] = 1;
  const after2 = new Uint8Array(of.n);
  after2[i4] = 1;
  for (let k5 = i4 + 1; k5 < of.n; k5++) if (of.cause[k5] && after2[of.cause[k5] - 1]) on[k5] = after2[k5] = 1;
  return on;
}
function groups(of, wanted2, open, only) {
  const counts = new Int32Array(of.cells.length + 1);
  const trouble2 = new Float64Array(of.cells.length);
  const troubles = of.whats.map((w5) => look2(w5).trouble ?? 0);
  const each = (act) => {
    for (let i4 = 0; i4 < of.n; i4++) if (of.cell[i4] >= 0 && (!only || only[i4])) act(i4, of.cell[i4]);
    for (const [i4, cells2] of of.several) if (!only || only[i4]) for (const c4 of cells2) act(i4, c4);
  };
  each((i4, c4) => {
    counts[c4]++;
    trouble2[c4] += troubles[of.what[i4]];
  });
  const lists = Array.from(counts.subarray(0, of.cells.length), (n4) => new Int32Array(n4));
  const filled = new Int32Array(of.cells.length);
  each((i4, c4) => {
    lists[c4][filled[c4]++] = i4;
  });
  const found = /* @__PURE__ */ new Map();
  of.cells.forEach((name, cell2) => {
    if (wanted2 && !name.includes(wanted2) || only && counts[cell2] === 0) return;
    const slash = name.indexOf("/");
    const group = slash < 0 ? name : name.slice(0, slash);
    const lane = { cell: cell2, name: slash < 0 ? name : name.slice(slash + 1), records: of.several.size ? lists[cell2].sort() : lists[cell2], trouble: trouble2[cell2] };
    found.get(group)?.push(lane) ?? found.set(group, [lane]);
  });
  return [...found].sort(([a4], [b4]) => a4 < b4 ? -1 : 1).map(([name, lanes]) => {
    const all2 = lanes.length;
    if (all2 > some && !open.has(name)) {
      lanes.sort((a4, b4) => b4.trouble - a4.trouble || b4.records.length - a4.records.length);
      lanes.length = some;
    }
    lanes.sort((a4, b4) => a4.name.localeCompare(b4.name, "en", { numeric: true }));
    return { name, lanes, all: all2 };
  });
}

// story.js
var marks = {
  "event.submitted": "▶",
  "event.emitted": "▷",
  "cell.stepped": "●",
  "intent.emitted": "◇",
  "intent.denied": "⊖",
  "intent.in_doubt": "?",
  "intent.awaiting_approval": "◔",
  "invocation.started": "•",
  "invocation.finished": "■",
  "intent.resolved": "⚑",
  "timer.fired": "◷",
  "clock.advanced": "·",
  "snapshot.created": "⚐",
  "rollback.applied": "↶"
};
var tone = ({ kind: kind2, how }) => look2(how ? kind2 + " " + how : kind2).color === "bad" ? "bad" : "";
function Mark({ of: record2 }) {
  const of = record2.kind;
  return html`<span class=${"mark " + of.replace(".", "-") + " " + tone(record2)} aria-hidden="true">${marks[
    /** @type {keyof typeof marks} */
    of
  ] ?? "·"}</span>`;
}
var sentence = (record2) => spelled(record2.what);
var most = 40;
function Story({ world, from }) {
  const [way, setWay] = useState(
    /** @type {any[]} */
    []
  );
  A2(() => {
    const end = new AbortController();
    (async () => {
      const found = [];
      for (let at3 = from; at3 > 0 && found.length < most && !end.signal.aborted; ) {
        const record2 = await get(pathOf(world, "records", at3) + "?raw=false", end.signal);
        found.push(record2);
        at3 = record2.cause;
      }
      setWay(found);
    })().catch(() => {
    });
    return () => end.abort();
  }, [world, from]);
  return html`<ol class="story">${way.map((r4) => html`<li key=${r4.id}>
    <a href=${address(world, "records", { of: r4.id })}>#${r4.id}</a> <${Mark} of=${r4} /> <b>${spelled(r4.kind)}</b>
    <p class=${tone(r4)}>${sentence(r4)}</p>
  </li>`)}</ol>`;
}

// cells.js
function Cells({ world, status }) {
  const after2 = place.value.of.after ?? "";
  const { is, error } = useAnswer(pathOf(world, "cells") + `?limit=500${after2 ? "&after=" + encodeURIComponent(after2) : ""}${ofMoment("&")}`);
  const cells2 = is?.cells ?? [];
  const chosen = place.value.of.of || cells2[0]?.cell || "";
  const items = cells2.map((c4) => ({
    id: c4.cell,
    href: here({ of: c4.cell }),
    body: html`<b>${spelled(c4.cell)}</b><span>${c4.n} steps${c4.mailbox ? `, ${c4.mailbox} waiting` : ""}${c4.halted ? html` <em class="halted">halted</em>` : ""}</span>`
  }));
  return html`<div class="two">
    <section class="side">
      <${Head} title="Cells" about=${at() ? "" : number(status?.cells ?? 0)}>${is?.next && html`<a href=${here({ after: cells2[cells2.length - 1].cell, of: "" })}>more</a>`}<//>
      <${Trouble} of=${error} />
      <${List} label="Cells" items=${items} chosen=${chosen} />
      <footer><${Command} line=${"worldctl cell list" + (at() ? " --at " + word(at()) : "")} /></footer>
    </section>
    <section class="main">${chosen && html`<${Cell} key=${chosen} world=${world} cell=${chosen} />`}</section>
  </div>`;
}
function Cell({ world, cell: cell2 }) {
  const name = encodeURIComponent(cell2);
  const { is, error } = useAnswer(pathOf(world, "cell") + `?cell=${name}&mail=20${ofMoment("&")}`);
  const step2 = useAnswer(pathOf(world, "cell", "diff") + `?cell=${name}${ofMoment("&")}`);
  const way = useAnswer(pathOf(world, "records") + `?raw=false&cell=${name}&limit=200&before=${(is?.at ?? 0) + 1}`);
  if (!is) return html`<${Trouble} of=${error} />`;
  return html`<${Head} title=${spelled(cell2)} about=${at() ? "as of #" + is.at : "now"} />
    <div class="pad">
      <${Trouble} of=${error} />
      <dl class="facts">
        <${Fact} name="steps">${is.n}<//>
        <${Fact} name="stands">${is.halted ? html`<em class="halted">halted</em>` : "goes on"}<//>
        ${is.failure && html`<${Fact} name="failed at"><a href=${there("records", { of: is.failure.event })}>#${is.failure.event}</a><pre class="block">${spelled(is.failure.error)}</pre><//>`}
      </dl>
      <${Stuck} world=${world} of=${is} />
      <h2 class="sub">State</h2>
      <div class="box" id="state"><${Value} of=${is.state} /></div>
      <${Step} of=${step2.is} error=${step2.error} />
      <${Due} name="Mailbox" all=${is.mailbox_len} of=${is.mailbox} />
      <${Due} name="Scheduled" all=${is.scheduled_len} of=${is.scheduled} />
      <${Due} name="Timers" all=${is.timers_len} of=${is.timers} />
      <${Rights} world=${world} cell=${cell2} />
      <h2 class="sub">Its way</h2>
      <ol class="story">${(way.is?.records ?? []).map((r4) => html`<li key=${r4.id} class=${r4.id === is.at ? "here" : ""}>
        <a href=${here({ of: cell2, at: r4.id })} title="as of this record">#${r4.id}</a> <${Mark} of=${r4} /> <b>${spelled(r4.kind)}</b> <small>${when(r4.time)}</small><p class=${tone(r4)}>${sentence(r4)}</p></li>`)}</ol>
      <footer><${Command} line=${`worldctl cell show ${word(cell2)}${at() ? " --at " + word(at()) : ""}`} /></footer>
    </div>`;
}
function Step({ of, error }) {
  if (!of) return error && html`<p class="dim">What its last step changed cannot be told: ${spelled(error.message)}.</p>`;
  return html`<h2 class="sub">What its last step changed <small>#${of.a} to #${of.b}</small></h2>
    ${of.same ? html`<p class="dim">Nothing.</p>` : html`<${Changes} of=${of.state} />`}`;
}
function Changes({ of }) {
  return html`<div class="box"><dl class="value changes">${of.map((c4) => html`<div key=${c4.path}><dt>${line(c4.path || "all of it", 80)}</dt><dd>
    ${c4.a !== void 0 && html`<del><${Value} of=${c4.a} /></del>`} ${c4.b !== void 0 && html`<ins><${Value} of=${c4.b} /></ins>`}</dd></div>`)}</dl></div>`;
}
function Due({ name, all: all2, of }) {
  if (!all2) return null;
  return html`<h2 class="sub">${name} <small>${number(all2)}${all2 > of.length ? ", the first " + of.length : ""}</small></h2>
    <ol class="story">${of.map((e4) => html`<li key=${e4.record + e4.name}><a href=${there("records", { of: e4.record })}>#${e4.record}</a> <b>${spelled(e4.name)}</b>
      ${e4.at !== void 0 && html` <small>at ${when(e4.at)}</small>`}<p>${line(e4.data)}</p></li>`)}</ol>`;
}
function Rights({ world, cell: cell2 }) {
  const rules = useAnswer(pathOf(world, "manifest"), true);
  const drawn = useAnswer(at() ? null : pathOf(world, "budgets") + "?limit=1000");
  const { reducers = {}, caps = {} } = rules.is?.manifest ?? {};
  const reducer = cell2.slice(0, cell2.indexOf("/"));
  const grants = Object.hasOwn(reducers, reducer) ? reducers[reducer].grants ?? [] : [];
  const budgets = (drawn.is?.budgets ?? []).filter((b4) => b4.scope === "cell" && b4.name === cell2 || b4.scope === "capability" && grants.includes(b4.name));
  return html`<h2 class="sub">Capabilities <small>by the rules in force now</small></h2>
    ${grants.length === 0 ? html`<p class="dim">None.</p>` : html`<dl class="facts">${grants.map((g5) => html`<${Fact} key=${g5} name=${spelled(g5)}>${Object.hasOwn(caps, g5) && html`${spelled(caps[g5].type)} <code>${line(caps[g5].params ?? {}, 200)}</code>`}<//>`)}</dl>`}
    ${budgets.length > 0 && html`<h2 class="sub">Budgets</h2><dl class="facts">${budgets.flatMap((b4) => b4.units.map((u4) => html`<${Fact} key=${b4.scope + b4.name + u4.unit} name=${spelled(b4.name)}>
      ${number(u4.left)} of ${number(u4.limit)} ${spelled(u4.unit)} left${u4.held > 0 && `, ${number(u4.held)} held`} <meter min="0" max=${u4.limit || 1} value=${u4.spent + u4.held} aria-label=${"spent and held of " + spelled(u4.unit)}></meter><//>`))}</dl>`}`;
}

// message.js
var known2 = [{ who: "role", text: "content" }, { who: "from", text: "words" }];
function messageOf(data, view) {
  if (data === null || typeof data !== "object" || Array.isArray(data)) return null;
  const of = sessionOf(data);
  if (of) return of;
  for (const shape2 of view ? [view] : known2) {
    const text3 = wordsOf(own(data, shape2.text));
    const who = shape2.who === void 0 ? "" : own(data, shape2.who);
    if (text3 === null || typeof who !== "string" || !(who || text3)) continue;
    const rest = Object.entries(data).filter(([name, v5]) => name !== shape2.text && name !== shape2.who && !isEmpty(v5));
    return { who, text: text3, rest: rest.length > 0 ? Object.fromEntries(rest) : void 0 };
  }
  return null;
}
function sessionOf(data) {
  const { prompt, model, text: text3, usage, result, body, header, ...rest } = data;
  if (isAsked(data)) return { who: "user", text: prompt, rest: { model, ...rest } };
  if (typeof text3 !== "string") return null;
  if (usage !== void 0 && Array.isArray(data.calls)) return { who: "assistant", text: text3, rest: data.calls.length > 0 ? { calls: data.calls } : void 0 };
  return typeof result === "string" && typeof data.late === "boolean" ? { who: "tool", text: text3 || spoken(result) || spoken(String(data.error ?? "")), rest: void 0 } : null;
}
var isAsked = (data) => isObject(data) && ["ask", "prompt", "model", "dialect"].every((name) => typeof own(data, name) === "string") && data.model !== "";
function calledOf(params) {
  if (isAsked(params)) return params.model + ": " + params.prompt;
  if (!isObject(params) || !["ask", "tool", "server"].every((name) => typeof own(params, name) === "string")) return null;
  return (params.server && params.server + "/") + params.tool + " " + text2(own(params, "arguments"));
}
var readable = (params) => isAsked(params) && typeof params.body === "string" ? { ...params, body: spoken(params.body) || params.body } : params;
function spoken(base64) {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(Uint8Array.from(atob(base64), (c4) => c4.charCodeAt(0)));
  } catch {
    return "";
  }
}
var own = (data, name) => Object.hasOwn(data, name) ? data[name] : void 0;
var isEmpty = (v5) => v5 === null || v5 === "" || Array.isArray(v5) && v5.length === 0;
function wordsOf(content) {
  if (content === null || typeof content === "string") return content ?? "";
  if (!Array.isArray(content) || content.length === 0) return null;
  const parts2 = content.map((p5) => p5?.text);
  return parts2.every((p5) => typeof p5 === "string") ? parts2.join("\n") : null;
}
function useViews(world, records2) {
  const manifest = useAnswer(pathOf(world, "manifest"), true);
  const [views2, setViews] = useState(
    /** @type {Map<string, View>} */
    /* @__PURE__ */ new Map()
  );
  const asked2 = T2(/* @__PURE__ */ new Set());
  const events2 = manifest.is?.manifest?.events ?? {};
  const names = new Set([...records2.values()].filter((r4) => r4.kind.startsWith("event.")).map((r4) => r4.name));
  A2(() => {
    for (const name of names) {
      const schema = Object.hasOwn(events2, name) ? events2[name].schema : void 0;
      if (!schema || asked2.current.has(name)) continue;
      asked2.current.add(name);
      get(pathOf(world, "contents", schema)).then((is) => {
        const view = is?.["x-view"];
        if (typeof view?.text === "string" && (view.who === void 0 || typeof view.who === "string")) setViews((was) => new Map(was).set(name, view));
      }, () => {
      });
    }
  }, [manifest.is, [...names].join()]);
  return views2;
}
function context(before, now) {
  if (!isObject(before) || !isObject(now)) return null;
  const found = [];
  let goesOn = false;
  for (const name of /* @__PURE__ */ new Set([...Object.keys(before), ...Object.keys(now)])) {
    const [a4, b4] = [own(before, name), own(now, name)];
    if (JSON.stringify(a4) === JSON.stringify(b4)) continue;
    if (Array.isArray(a4) && Array.isArray(b4)) {
      const { kept: kept3, gone } = overlap(a4.map(text2), b4.map(text2));
      goesOn ||= kept3 > 0 && b4.every((x3) => typeof x3 === "string" || messageOf(x3, void 0) !== null);
      found.push({ name, added: b4.slice(kept3), note: `${b4.length - kept3} more` + (gone ? `, ${gone} left out` : "") });
    } else if (typeof a4 === "string" && typeof b4 === "string" && a4 && b4.startsWith(a4)) {
      goesOn = true;
      found.push({ name, added: [b4.slice(a4.length)], note: `${b4.length - a4.length} letters more` });
    } else found.push({ name, added: b4 === void 0 ? [] : [b4], was: a4, note: "another" });
  }
  return goesOn ? found : null;
}
var isObject = (v5) => v5 !== null && typeof v5 === "object" && !Array.isArray(v5);
var text2 = (v5) => JSON.stringify(v5);
function overlap(a4, b4) {
  let first2 = 0;
  while (first2 < a4.length && a4[first2] === b4[first2]) first2++;
  for (let gone = 0; first2 + gone < a4.length; gone++) {
    let i4 = 0;
    while (first2 + gone + i4 < a4.length && a4[first2 + gone + i4] === b4[first2 + i4]) i4++;
    if (first2 + gone + i4 === a4.length) return { kept: first2 + i4, gone };
  }
  return { kept: first2, gone: a4.length - first2 };
}

// compare.js
function Compare({ world }) {
  const { a: a4 = "", b: b4 = "", with: other2 = "" } = place.value.of;
  const asked2 = a4 !== "" || other2 !== "";
  const query = new URLSearchParams({ a: a4 || "head", b: b4 || "head", limit: "100" });
  if (other2) query.set("with", other2);
  const { is, error } = useAnswer(asked2 ? pathOf(world, "compare") + "?" + query : null, true);
  const command = `worldctl diff ${word(a4 || "head")} ${other2 ? word((dirOf(other2) || "../OTHER") + (b4 ? "@" + b4 : "")) : word(b4 || "head")}`;
  return html`<${Head} title="Compare" about=${is ? is.same ? "they are the same" : "they differ" : ""} />
    <div class="pad wide">
      <${Choice} key=${a4 + " " + b4 + " " + other2} world=${world} a=${a4} b=${b4} other=${other2} />
      <${Trouble} of=${error} />
      ${!asked2 && html`<p class="dim">Say which moments: a record (#120), the end of a tick (t5), a snapshot, so many records before the last (-10), head.</p>`}
      ${asked2 && !is && !error && html`<p class="dim">It is computed…</p>`}
      ${is && html`<${Difference} of=${is} worlds=${[world, other2 || world]} />`}
      <footer>${other2 && html`<small>while nobody has the other world open: </small>`}<${Command} line=${command} /></footer>
    </div>`;
}
function Choice({ world, a: a4, b: b4, other: other2 }) {
  const worlds = useAnswer("/api/worlds", true);
  const snapshots = useAnswer(pathOf(world, "snapshots") + "?limit=100", true);
  const [left2, setLeft] = useState(a4 || at());
  const [right, setRight] = useState(b4);
  const [beside2, setBeside] = useState(other2);
  A2(() => setBeside(other2), [worlds.is]);
  const show = (e4) => {
    e4.preventDefault();
    go(world, "compare", { a: left2.trim().replace(/^#/, "") || "head", b: right.trim().replace(/^#/, ""), with: beside2 });
  };
  const enter2 = (e4) => e4.key === "Enter" && show(e4);
  return html`<div class="choices" role="search" aria-label="What is compared" onKeyDown=${enter2}>
    <label>This world at<input list="moments" value=${left2} placeholder="head" onInput=${(e4) => setLeft(e4.target.value)} /></label>
    <label>and<select value=${beside2} onChange=${(e4) => setBeside(e4.target.value)}>
      <option value="">this world</option>
      ${(worlds.is?.worlds ?? []).filter((w5) => w5.id !== world).map((w5) => html`<option key=${w5.id} value=${w5.id}>${line(w5.name, 40)} · ${short(w5.id, 6)}</option>`)}
    </select></label>
    <label>at<input list="moments" value=${right} placeholder="head" onInput=${(e4) => setRight(e4.target.value)} /></label>
    <datalist id="moments">${(snapshots.is?.snapshots ?? []).map((s4) => html`<option key=${s4.record} value=${s4.name}></option>`)}</datalist>
    <button type="button" class="full yes" onClick=${show}>Compare</button>
  </div>`;
}
var At = ({ world, of }) => world ? html`<a href=${address(world, "timeline", { of })}>#${number(of)}</a>` : html`#${number(of)}`;
function GoesOn({ name, world, of }) {
  const { is } = useAnswer(world && of > 0 ? pathOf(world, "records", of) + "?raw=false" : null, true);
  if (of === 0) return name + " ends there";
  return html`${name} goes on with <${At} world=${world} of=${of} />${is && html` <b>${spelled(is.kind)}</b>${is.cells.length > 0 && " " + line(is.cells.join(", "), 80)}`}`;
}
function Difference({ of, worlds }) {
  const cells2 = [...of.cells.added, ...of.cells.gone, ...of.cells.changed].sort((a4, b4) => a4.cell < b4.cell ? -1 : 1);
  const intents = [...of.intents.changed, ...of.intents.added, ...of.intents.gone];
  const { parted } = of;
  return html`<dl class="facts">
      <${Fact} name="A">${spelled(of.a.world_id)} at <${At} world=${worlds[0]} of=${of.a.at} />, ${atTick(of.a.time, worlds[0])}, state root <code>${short(of.a.state_root)}</code><//>
      <${Fact} name="B">${spelled(of.b.world_id)} at <${At} world=${worlds[1]} of=${of.b.at} />, ${atTick(of.b.time, worlds[1] || worlds[0])}, state root <code>${short(of.b.state_root)}</code><//>
      <${Fact} name="they part">${parted.common > 0 ? html`after <${At} world=${worlds[0]} of=${parted.common} />, which both have` : "at the first record"}: <${GoesOn} name="A" world=${worlds[0]} of=${parted.a} />, <${GoesOn} name="B" world=${worlds[1]} of=${parted.b} /><//>
      ${of.a.manifest !== of.b.manifest && html`<${Fact} name="rules"><span class="warn">others: ${short(of.a.manifest, 8)}, and ${short(of.b.manifest, 8)}</span><//>`}
    </dl>
    <h2 class="sub">Cells <small>${number(cells2.length + (of.left_out?.cells ?? 0))} differ${of.left_out?.cells > 0 ? ", " + number(of.left_out.cells) + " are not shown" : ""}${of.cells.histories > 0 ? `; ${number(of.cells.histories)} are the same and came there by other events` : ""}</small></h2>
    ${cells2.map((c4) => html`<${CellRow} key=${c4.cell} of=${c4} world=${worlds[0]} />`)}
    <h2 class="sub">Intents <small>${number(intents.length + (of.left_out?.intents ?? 0))} differ${of.left_out?.intents > 0 ? ", " + number(of.left_out.intents) + " are not shown" : ""}</small></h2>
    ${intents.length > 0 && html`<${Intents} of=${intents} worlds=${worlds} />`}
    <h2 class="sub">Cost since they parted</h2>
    <${Costs} of=${of.cost} />
    ${(!of.timers.same || !of.scheduled.same) && html`<dl class="facts"><${Fact} name="timers">${number(of.timers.a)} and ${number(of.timers.b)}${of.timers.same ? ", the same" : ""}<//><${Fact} name="scheduled">${number(of.scheduled.a)} and ${number(of.scheduled.b)}${of.scheduled.same ? ", the same" : ""}<//></dl>`}`;
}
function CellRow({ of, world }) {
  const [open, setOpen] = useState(false);
  const shown2 = open ? of.state : of.state.slice(0, 5);
  return html`<div class="bubble differs">
    <header><b><a href=${address(world, "cells", { of: of.cell })}>${line(of.cell, 80)}</a></b> <small>${of.change === "changed" ? `step ${of.a.n} → ${of.b.n}` : of.change === "added" ? "only in B" : "only in A"}</small></header>
    <dl class="value">${shown2.map((s4) => html`<div key=${s4.path}><dt>${line(s4.path || "state", 120)}</dt><dd>
      ${Object.hasOwn(s4, "a") && html`<del><${Whole} of=${s4.a} /></del>`} ${Object.hasOwn(s4, "b") && html`<ins><${Whole} of=${s4.b} /></ins>`}</dd></div>`)}</dl>
    ${of.state.length > shown2.length && html`<button type="button" class="small" onClick=${() => setOpen(true)}>${number(of.state.length - shown2.length)} more places</button>`}
  </div>`;
}
function Intents({ of, worlds }) {
  const side = (x3, world) => x3 ? html`${spelled(x3.outcome || x3.state)} ${world ? html`<a href=${address(world, "records", { of: x3.record })}>#${x3.record}</a>` : ""}` : html`<span class="dim">not asked for</span>`;
  return html`<div class="scroll" tabindex="0" role="region" aria-label="Intents"><table>
    <thead><tr><th>cell</th><th>asks for</th><th>A</th><th>B</th></tr></thead>
    <tbody>${of.map((x3, i4) => html`<tr key=${i4}><td>${line(x3.cell, 60)}</td><td><b>${line(x3.kind, 60)}</b> <code>${line(calledOf(x3.params) ?? x3.params, 60)}</code></td><td>${side(x3.a, worlds[0])}</td><td>${side(x3.b, worlds[1])}</td></tr>`)}</tbody>
  </table></div>`;
}
function Costs({ of }) {
  const units2 = ["calls", "tokens", "bytes", "micros"].filter((u4) => of.a[u4] || of.b[u4]);
  if (units2.length === 0) return html`<p class="dim">Nothing.</p>`;
  return html`<div class="scroll" tabindex="0" role="region" aria-label="Cost"><table>
    <thead><tr><th>unit</th><th class="n">A</th><th class="n">B</th><th class="n">B − A</th></tr></thead>
    <tbody>${units2.map((u4) => html`<tr key=${u4}><td>${u4 === "micros" ? "money, in millionths" : u4}</td><td class="n">${number(of.a[u4] ?? 0)}</td><td class="n">${number(of.b[u4] ?? 0)}</td><td class="n">${number((of.b[u4] ?? 0) - (of.a[u4] ?? 0))}</td></tr>`)}</tbody>
  </table></div>`;
}

// records_by_id.js
var most2 = 300;
function useRecords(world, ids) {
  const kept3 = T2({ world, is: (
    /** @type {Map<number, any>} */
    /* @__PURE__ */ new Map()
  ) });
  const [, setCame] = useState(0);
  const [error, setError] = useState(
    /** @type {Error | null} */
    null
  );
  if (kept3.current.world !== world) kept3.current = { world, is: /* @__PURE__ */ new Map() };
  const { is } = kept3.current;
  const missing = [...new Set(ids)].filter((id) => id > 0 && !is.has(id));
  A2(() => {
    if (missing.length === 0) return void 0;
    const end = new AbortController();
    (async () => {
      for (let i4 = 0; i4 < missing.length; i4 += most2) {
        let path = pathOf(world, "records") + "?raw=false&ids=" + missing.slice(i4, i4 + most2).join();
        while (path) {
          const page2 = await get(path, end.signal);
          for (const r4 of page2.records) is.set(r4.id, r4);
          path = page2.next;
          setCame((n4) => n4 + 1);
        }
      }
      setError(null);
    })().catch((err) => !end.signal.aborted && setError(err));
    return () => end.abort();
  }, [world, missing.join()]);
  return { is, error };
}

// past.js
function useRollbacks(world) {
  const { of, version } = columns.value;
  const ids = useMemo(() => idsOf(of, /^rollback\.applied/), [of, version]);
  const { is } = useRecords(world, ids);
  const all2 = ids.filter((id) => is.has(id)).map((id) => ({ id, at: is.get(id).payload?.snapshot_journal_len ?? 0, record: is.get(id) }));
  const key = all2.map((r4) => r4.id).join();
  return useMemo(() => all2, [world, key]);
}
function idsOf(of, test) {
  const wanted2 = of.whats.map((w5) => test.test(w5));
  const ids = [];
  for (let i4 = 0; i4 < of.n; i4++) if (wanted2[of.what[i4]]) ids.push(i4 + 1);
  return ids;
}
function kept2(all2, head) {
  const parts2 = [];
  for (let end = head; end > 0; ) {
    const last = all2.findLast((r4) => r4.id <= end);
    parts2.push([last?.id ?? 1, end]);
    end = last?.at ?? 0;
  }
  return parts2;
}
function leftBehind(all2, head) {
  const parts2 = kept2(all2, head);
  return (id) => parts2.some(([from, to]) => id >= from && id <= to) ? 0 : parts2.findLast(([from]) => from > id)?.[0] ?? 0;
}

// turns.js
function turnsOf(of, cell2, left2) {
  const c4 = of.cells.indexOf(cell2);
  const turns = [];
  if (c4 < 0) return { turns, pending: [] };
  const kinds = of.whats.map(kind);
  const turnOf = new Int32Array(of.n + 1);
  const callOf = new Int32Array(of.n + 1);
  const calls = /* @__PURE__ */ new Map();
  const last = /* @__PURE__ */ new Map();
  const waits = /* @__PURE__ */ new Set();
  for (let i4 = 0; i4 < of.n; i4++) {
    const [id, cause, is] = [i4 + 1, of.cause[i4], kinds[of.what[i4]]];
    if (is === "event" && (of.cell[i4] === c4 || of.several.get(i4)?.includes(c4))) waits.add(id);
    if (is === "step" && of.cell[i4] === c4) {
      if (!left2(id)) waits.delete(cause);
      turnOf[id] = turns.push({ step: id, event: cause, answers: callOf[cause], out: [], records: [cause] });
      if (of.whats[of.what[i4]].startsWith("cell.failed")) output(turns[turns.length - 1], id, of.whats[of.what[i4]], 0);
      continue;
    }
    const turn = turnOf[cause];
    if (cause > 0 && turn > 0 && is !== "quiet") {
      const out = output(turns[turn - 1], id, of.whats[of.what[i4]], is === "call" ? last.get(of.name[i4]) ?? 0 : 0);
      if (is !== "call") continue;
      last.set(of.name[i4], id);
      calls.set(id, out);
      callOf[id] = id;
    } else if (cause > 0 && callOf[cause] > 0) {
      callOf[id] = callOf[cause];
      if (is === "call" || is === "answer") calls.get(callOf[id]).became = of.whats[of.what[i4]];
    }
  }
  for (const turn of turns) if (turn.answers) turn.records.push(turn.answers);
  return { turns, pending: [...waits].filter((id) => !left2(id)) };
}
function output(turn, id, what, before) {
  const out = { id, what, before, became: what };
  turn.out.push(out);
  turn.records.push(id);
  if (before) turn.records.push(before);
  return out;
}
function kind(what) {
  if (/^cell\.(stepped|failed)/.test(what)) return "step";
  if (/^event\.(submitted|emitted)/.test(what)) return "event";
  if (/^intent\.(emitted|awaiting_approval|denied)/.test(what)) return "call";
  if (/^(invocation\.finished|intent\.(in_doubt|ended|cancelled))/.test(what)) return "answer";
  if (/^(timer\.set|cell\.cancelled|cell\.deleted)/.test(what)) return "other";
  return "quiet";
}

// conversations.js
var [most3, window_, waiting] = [200, 40, 20];
function Conversations({ world }) {
  const { of, version } = columns.value;
  const filter = place.value.of.filter ?? "";
  const cells2 = useMemo(() => talkers(of), [of, version]);
  const wanted2 = cells2.filter((c4) => c4.name.includes(filter));
  const chosen = place.value.of.of || wanted2[0]?.name || "";
  const items = wanted2.slice(0, most3).map((c4) => ({
    id: c4.name,
    href: there("conversations", { of: c4.name, filter }),
    body: html`<span class="talker"><b>${spelled(c4.name)}</b><small>${number(c4.turns)}</small></span>`
  }));
  return html`<div class="two">
    <section class="side">
      <${Head} title="Conversations" about=${number(cells2.length) + (cells2.length === 1 ? " cell" : " cells")} />
      <div class="above"><input aria-label="Filter cells" placeholder="filter cells" value=${filter} onInput=${(e4) => amend({ filter: e4.target.value })} /></div>
      <${List} label="Cells" items=${items} chosen=${chosen} />
      ${wanted2.length > most3 && html`<p class="pad dim">${number(wanted2.length - most3)} more: filter them.</p>`}
      <footer><${Command} line=${"worldctl cell list"} /></footer>
    </section>
    <section class="main">${chosen && html`<${Talk} key=${chosen} world=${world} cell=${chosen} />`}</section>
  </div>`;
}
function talkers(of) {
  const steps = of.whats.map((w5) => w5.startsWith("cell.stepped") || w5.startsWith("cell.failed"));
  const turns = new Int32Array(of.cells.length);
  for (let i4 = 0; i4 < of.n; i4++) if (steps[of.what[i4]] && of.cell[i4] >= 0) turns[of.cell[i4]]++;
  const all2 = of.cells.map((name, c4) => ({ name, turns: turns[c4] })).filter((c4) => c4.turns > 0);
  return all2.sort((a4, b4) => a4.name.localeCompare(b4.name, "en", { numeric: true }));
}
function Talk({ world, cell: cell2 }) {
  const { of, version } = columns.value;
  const back = useRollbacks(world);
  const last = Math.min(recordAt(of) || of.n, of.n);
  const left2 = useMemo(() => leftBehind(back, last), [back, of, version, last]);
  const { turns, pending } = useMemo(() => turnsOf(of, cell2, left2), [of, version, cell2, left2]);
  const all2 = last < of.n ? turns.filter((t5) => t5.step <= last) : turns;
  const end = Math.min(all2.length, Number(place.value.of.to || all2.length));
  const start = Math.max(0, end - window_);
  const shown2 = all2.slice(start, end);
  const waits = last < of.n || end < all2.length ? [] : pending;
  const { is, error } = useRecords(world, [...shown2.flatMap((t5) => t5.records), ...waits.slice(0, waiting)]);
  const views2 = useViews(world, is);
  const items = itemsOf(shown2, is, views2);
  const room = T2(
    /** @type {HTMLElement | null} */
    null
  );
  const atEnd = T2(true);
  F2(() => {
    const on = room.current?.parentElement;
    if (on && atEnd.current) on.scrollTop = on.scrollHeight;
  }, [items.length, end]);
  const calls = items.filter((x3) => x3.of === "call").length;
  return html`<${Head} title=${spelled(cell2)} about=${`${number(all2.length)} turns` + (calls ? `, ${number(calls)} ${calls === 1 ? "call" : "calls"} shown` : "")}>
      <a href=${there("cells", { of: cell2 })}>state</a>
      <a href=${there("timeline", { filter: cell2 })}>timeline</a>
    <//>
    <${Trouble} of=${error} />
    ${of.n > 0 && turns.length === 0 && html`<p class="pad dim">This cell has handled nothing yet.</p>`}
    <div class="talk" ref=${room} onMouseMove=${() => {
    const on = room.current?.parentElement;
    atEnd.current = Boolean(on && on.scrollHeight - on.scrollTop - on.clientHeight < 60);
  }}>
      ${start > 0 && html`<p class="between"><a href=${here({ to: start })}>${number(start)} turns before</a></p>`}
      ${items.map((x3) => html`<${Item} key=${x3.of + x3.record.id} item=${x3} left=${left2(x3.step)} />`)}
      ${waits.length > 0 && html`<h2 class="sub">Not handled yet <small>${number(waits.length)}</small></h2>`}
      ${waits.slice(0, waiting).map((id) => is.get(id)).map((r4) => r4 && html`<${Item} key=${"waits" + r4.id} item=${{ of: "event", record: r4, said: messageOf(r4.payload?.data, views2.get(r4.name)), step: r4.id }} left=${0} />`)}
      ${end < all2.length && html`<p class="between"><a href=${here({ to: end + window_ >= all2.length ? "" : end + window_ })}>${number(all2.length - end)} turns after</a></p>`}
      <footer><${Command} line=${"worldctl timeline " + word(cell2) + (at() ? " --to " + word(at()) : "")} /></footer>
    </div>`;
}
function itemsOf(turns, is, views2) {
  const items = [];
  let prompt = "";
  for (const turn of turns) {
    const event = is.get(turn.event);
    const step2 = turn.step;
    const before = items[items.length - 1];
    const call = is.get(turn.answers);
    if (event && call) {
      if (before?.of === "call" && before.record.id === call.id) before.answer = event;
      else items.push({ of: "answer", record: event, call, step: step2 });
    } else if (event) {
      const data = event.payload?.data;
      const again = isAsked(data) && data.prompt === prompt;
      if (isAsked(data)) prompt = data.prompt;
      if (!again) items.push({ of: event.kind === "timer.fired" ? "timer" : "event", record: event, said: messageOf(data, views2.get(event.name)), step: step2 });
    }
    for (const out of turn.out) {
      const record2 = is.get(out.id);
      if (!record2) continue;
      if (out.what.startsWith("intent.")) items.push({ of: "call", record: record2, before: is.get(out.before), step: step2, what: out.became });
      else if (out.what.startsWith("event.")) items.push({ of: "said", record: record2, said: messageOf(record2.payload?.data, views2.get(record2.name)), step: step2 });
      else items.push({ of: out.what.startsWith("cell.failed") ? "failed" : "other", record: record2, step: step2 });
    }
  }
  return items;
}
function Item({ item, left: left2 }) {
  const shown2 = { event: Event, said: Event, call: Call, answer: Answer, timer: Line, failed: Line, other: Line }[item.of];
  return html`<article class=${"item is-" + item.of + (mine(item) ? " mine" : "") + (left2 ? " left" : "")}>
    ${left2 > 0 && html`<small class="was">left behind by the rollback <a href=${there("history", { of: left2 })}>#${left2}</a></small>`}
    <${shown2} item=${item} />
  </article>`;
}
var mine = (item) => item.of === "said" || item.of === "call" || item.of === "answer" || item.said?.who === "assistant";
var When = ({ of, step: step2 = of.id }) => html`<a class="when" href=${there("records", { of: of.id })}>${when(columns.value.of.time[step2 - 1])} #${of.id}</a>`;
function Event({ item }) {
  const { record: record2, said } = item;
  const to = item.of === "said" ? record2.cells.join(", ") || "nobody" : "";
  const due = item.step === record2.id && record2.payload?.due > record2.time ? record2.payload.due : 0;
  return html`<header><b>${line(said?.who || record2.name, 60)}</b>${said?.who && html` <small>${line(record2.name, 60)}</small>`}${to && html` <small>to ${line(to, 80)}</small>`}${due > 0 && html` <small>due at ${atTick(due)}</small>`}<${When} of=${record2} step=${item.step} /></header>
    ${record2.redacted ? html`<p class="dim">redacted</p>` : said ? html`<${Words} of=${said.text} />${said.rest !== void 0 && html`<${More} of=${said.rest} />`}` : html`<div class="bubble"><${Whole} of=${record2.payload?.data ?? null} /></div>`}`;
}
var More = ({ of }) => html`<details><summary>with it: ${line(of, 90)}</summary><div class="bubble"><${Whole} of=${of} /></div></details>`;
var Line = ({ item }) => html`<header><span class="say">${line(item.record.what, 200)}</span><${When} of=${item.record} step=${item.step} /></header>`;
var ends = [
  { test: /^invocation\.finished ok/, sign: "■", how: "good" },
  { test: /^invocation\.finished (input_required|accepted)/, sign: "◔", how: "warn" },
  { test: /^invocation\.finished|^intent\.ended/, sign: "✕", how: "bad" },
  { test: /^intent\.denied/, sign: "⊖", how: "bad" },
  { test: /^intent\.awaiting_approval/, sign: "◔", how: "warn" },
  { test: /^intent\.in_doubt/, sign: "?", how: "doubt" }
];
function Call({ item }) {
  const { record: record2, answer, before } = item;
  const [open, setOpen] = useState(false);
  const became = item.what ?? record2.kind;
  const end = ends.find((e4) => e4.test.test(became)) ?? { sign: "◇", how: "open" };
  const params = record2.payload?.params;
  const grown2 = useMemo(() => before ? context(before.payload?.params, params) : null, [before, record2]);
  const called = calledOf(params);
  const about2 = called ? line(called, 160) : grown2 ? "context: " + grown2.map((g5) => `${spelled(g5.name)} ${g5.note}`).join(", ") : line(params ?? null, 160);
  return html`<div class=${"bubble " + end.how}>
    <header><button type="button" class="fold" aria-expanded=${open} onClick=${() => setOpen(!open)}><span class=${end.how} aria-hidden="true">${end.sign}</span> <b>${line(record2.name, 60)}</b> <code>${about2}</code></button><${When} of=${record2} /></header>
    ${open && html`<div class="opened">
      ${grown2?.map((g5) => html`<${Grown} key=${g5.name} of=${g5} since=${before.id} />`)}
      <h2 class="sub">params</h2><${Whole} of=${readable(params) ?? null} />
      <dl class="facts">
        ${record2.payload?.rules?.length > 0 && html`<${Fact} name="decided by">${record2.payload.rules.map((r4) => line(r4, 200)).join(", ")}<//>`}
        ${record2.payload?.reason && html`<${Fact} name="reason">${line(record2.payload.reason, 400)}<//>`}
        ${record2.key && html`<${Fact} name="intent"><a href=${there("inbox", { of: record2.key, at: "" })}>${short(record2.key)}</a><//>`}
        ${answer && html`<${Fact} name="answered"><${When} of=${answer} /><//>`}
      </dl><h2 class="sub">answer</h2></div>`}
    ${answer ? html`<${Told} of=${answer} open=${open} />` : html`<p class="dim">${line(became, 60)}${record2.key && html` <a href=${there("inbox", { of: record2.key, at: "" })}>${short(record2.key)}</a>`}</p>`}
  </div>`;
}
function Grown({ of, since }) {
  return html`<h2 class="sub">${spelled(of.name)}: ${of.note} since #${since}</h2>
    ${of.added.map((x3, i4) => {
    const said = messageOf(x3, void 0);
    return said ? html`<header key=${i4}><b>${line(said.who, 60)}</b></header><${Words} of=${said.text} />${said.rest !== void 0 && html`<${More} of=${said.rest} />`}` : html`<div class="bubble" key=${i4}><${Whole} of=${x3} /></div>`;
  })}
    ${of.was !== void 0 && html`<div class="bubble gone"><${Value} of=${of.was} /></div>`}`;
}
function Answer({ item }) {
  return html`<div class=${"bubble answer " + tone(item.record)}><header><b>answer</b> <small>to ${line(item.call.name, 60)} <a href=${there("records", { of: item.call.id })}>#${item.call.id}</a></small><${When} of=${item.record} step=${item.step} /></header>
    <${Told} of=${item.record} open=${false} /></div>`;
}
function Told({ of, open }) {
  const [whole2, setWhole] = useState(false);
  const receipt = of.payload?.receipt;
  if (of.redacted) return html`<p class="dim">redacted</p>`;
  const payload = receipt ? receipt.payload : of.payload?.payload ?? of.payload?.reason;
  const said = messageOf(payload?.message ?? payload, void 0);
  const status = receipt?.status ?? of.how;
  if (said) return html`${status && status !== "ok" && html`<p class="bad">${line(status, 40)}</p>`}<header><b>${line(said.who, 60)}</b></header><${Words} of=${said.text} />${said.rest !== void 0 && html`<${More} of=${said.rest} />`}`;
  return html`${!open && html`<button type="button" class="fold" aria-expanded=${whole2} onClick=${() => setWhole(!whole2)}>${status && status !== "ok" && html`<b class="bad">${line(status, 40)}</b> `}<code>${line(payload ?? null, 160)}</code></button>`}
    ${(whole2 || open) && html`<${Whole} of=${payload ?? null} />`}`;
}

// find.js
function hitsOf(is) {
  if (!is) return [];
  return [
    ...is.record ? [{ href: there("records", { of: is.record.id }), body: html`#${is.record.id} <small>${spelled(is.record.kind)}</small>` }] : [],
    ...is.cells.map((cell2) => ({ href: there("cells", { of: cell2 }), body: spelled(cell2) })),
    ...is.intents.map((i4) => ({ href: there("inbox", { of: i4.key }), body: html`<code>${short(i4.key)}</code> <${State} of=${i4.state} /> <small>${spelled(i4.kind)}</small>` }))
  ];
}
function guess(text3) {
  if (/^#?\d+$/.test(text3)) return there("records", { of: text3.replace("#", "") });
  if (/^[0-9a-f]{8,64}$/.test(text3)) return there("inbox", { of: text3 });
  return there("cells", { of: text3 });
}
function Find({ world }) {
  const [text3, setText] = useState("");
  const what = text3.trim();
  const asked2 = world && what && !copy ? pathOf(world, "search") + "?limit=8&q=" + encodeURIComponent(what) : null;
  const { is, error } = useAnswer(asked2, true);
  const hits = hitsOf(is);
  const follow = (href) => {
    lead(href);
    setText("");
    document.activeElement?.blur();
  };
  const pressed = (e4) => {
    const box = (
      /** @type {HTMLElement} */
      e4.currentTarget
    );
    const all2 = (
      /** @type {HTMLElement[]} */
      [...box.querySelectorAll("input, .hits a")]
    );
    const on = all2.indexOf(
      /** @type {HTMLElement} */
      document.activeElement
    );
    const step2 = { ArrowDown: 1, ArrowUp: -1 }[e4.key];
    if (e4.key === "Escape") follow(location.hash);
    else if (e4.key === "Enter" && on === 0 && what && world) follow(/^#?\d+$/.test(what) ? guess(what) : hits[0]?.href ?? guess(what));
    else if (step2) all2[Math.max(0, Math.min(all2.length - 1, on + step2))].focus();
    else return;
    e4.preventDefault();
    e4.stopPropagation();
  };
  return html`<search class="find" onKeyDown=${pressed}>
    <label><span class="gone">Find</span><input id="find" autocomplete="off" placeholder="Find or go to…  /" value=${text3} disabled=${!world} onInput=${(e4) => setText(e4.target.value)} /></label>
    ${asked2 && html`<div class="hits" role="status">
      <${Trouble} of=${error} />
      ${hits.length > 0 && html`<ul>${hits.map((hit) => html`<li key=${hit.href}><a href=${hit.href} onClick=${(e4) => {
    e4.preventDefault();
    follow(hit.href);
  }}>${hit.body}</a></li>`)}</ul>`}
      ${is && hits.length === 0 && html`<p class="dim">nothing has that name or key</p>`}
      ${is?.more && html`<p class="dim">there are more</p>`}
    </div>`}
  </search>`;
}

// actions.js
function Form2({ name, kind: kind2 = "yes", ready, meanwhile = "", send, done, command, close, children }) {
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState(
    /** @type {Error | null} */
    null
  );
  const [is, setIs] = useState(
    /** @type {any} */
    null
  );
  const box = T2(
    /** @type {HTMLElement | null} */
    null
  );
  const alive = T2(true);
  F2(() => {
    box.current?.querySelector("input, textarea")?.focus();
    return () => {
      alive.current = false;
    };
  }, []);
  const act = async () => {
    if (!ready || busy || meanwhile || is) return;
    setBusy(true);
    setError(null);
    try {
      const answer = await send();
      if (done && alive.current) setIs(answer);
      else close();
    } catch (err) {
      setError(
        /** @type {Error} */
        err
      );
    }
    grown.value++;
    setBusy(false);
  };
  const pressed = (e4) => {
    if (e4.key === "Escape" && !busy) close();
    if (e4.key === "Enter" && (e4.ctrlKey || e4.metaKey)) void act();
  };
  return html`<div class="form" role="form" aria-label=${name} ref=${box} onKeyDown=${pressed}>
    ${children}
    ${meanwhile && html`<p class="trouble" role="alert">${meanwhile} Nothing was sent.</p>`}
    <${Trouble} of=${error} />
    ${is && done?.(is)}
    <div class="buttons">
      ${!is && html`<button type="button" class=${"full " + kind2} disabled=${!ready || busy || meanwhile !== ""} onClick=${act}>${busy ? "Under way…" : name} <kbd>ctrl ↵</kbd></button>`}
      <button type="button" disabled=${busy} onClick=${close}>${is ? "close" : "not yet"} <kbd>esc</kbd></button>
    </div>
    <${Command} line=${command} />
  </div>`;
}
var Field = ({ name, of, set, kind: kind2 = "text", hint = "" }) => html`<label>${name}<input type=${kind2} value=${of} placeholder=${hint} maxlength="4000" onInput=${(e4) => set(e4.target.value)} /></label>`;
var Check = ({ name, of, set }) => html`<label class="check"><input type="checkbox" checked=${of} onChange=${(e4) => set(e4.target.checked)} /> ${name}</label>`;
function Snap({ world, close }) {
  const [name, setName] = useState("");
  const [label, setLabel] = useState("");
  return html`<${Form2} name="Make a snapshot" ready=${true} send=${() => post(pathOf(world, "snapshots"), { name: name.trim(), label })} close=${close}
    command=${`worldctl snapshot create${name.trim() ? " " + word(name.trim()) : ""}${label ? " -m " + word(label) : ""}`}>
    <${Field} name="Name" of=${name} set=${setName} hint="s1, s2 and so on" />
    <${Field} name="What it is for" of=${label} set=${setLabel} />
  <//>`;
}
function Prune({ world, snap, gone, close }) {
  return html`<${Form2} name=${"Prune " + line(snap.name, 60)} kind="no" ready=${true} meanwhile=${gone ? "It was let go meanwhile." : ""} send=${() => post(pathOf(world, "snapshots", "prune"), { snapshot: snap.hash })} close=${close}
    command=${"worldctl snapshot prune " + word(snap.name)}>
    <p>What only this snapshot holds goes with it, and nobody can return to it. Its record stays.</p>
  <//>`;
}
var owes = (is) => JSON.stringify([...is.abandoned, ...is.reads].map((e4) => [e4.key, e4.state]));
function RollBack({ world, snap, gone, close }) {
  const [reason, setReason] = useState("");
  const [ack, setAck] = useState(false);
  const [compensate, setCompensate] = useState(false);
  const [fresh, setFresh] = useState(false);
  const [leaves, setLeaves] = useState(
    /** @type {any} */
    null
  );
  const [error, setError] = useState(
    /** @type {Error | null} */
    null
  );
  const path = pathOf(world, "rollback");
  const what = { snapshot: snap.hash, compensate, fresh_effects: fresh };
  const ask3 = () => post(path, { ...what, reason: "what would stay behind", ack: true, dry_run: true });
  A2(() => {
    let here2 = true;
    setLeaves(null);
    setAck(false);
    ask3().then((is) => here2 && setLeaves(is), (err) => here2 && setError(err));
    return () => {
      here2 = false;
    };
  }, [compensate, fresh]);
  const some2 = leaves && leaves.abandoned.length + leaves.reads.length > 0;
  const send = async () => {
    const now = await ask3();
    if (owes(now) === owes(leaves)) return post(path, { ...what, reason, ack });
    setLeaves(now);
    setAck(false);
    throw new Error("Meanwhile something else was done that would stay behind: look at the list again. Nothing was sent.");
  };
  return html`<${Form2} name=${"Roll back to " + line(snap.name, 60)} kind="no" ready=${reason.trim() !== "" && leaves !== null && (ack || !some2)} meanwhile=${gone ? "The snapshot was let go meanwhile." : ""}
    send=${send} close=${close} command=${`worldctl rollback ${word(snap.name)} --reason ${word(reason || "…")}${ack ? " --ack" : ""}${compensate ? " --compensate" : ""}${fresh ? " --fresh-effects" : ""}`}>
    <${Field} name="Reason (the journal keeps it)" of=${reason} set=${setReason} />
    <${Check} name="Make up for what its kind says how to" of=${compensate} set=${setCompensate} />
    <${Check} name="The same steps ask for new effects" of=${fresh} set=${setFresh} />
    <${Trouble} of=${error} />
    ${!leaves && !error && html`<p class="dim">What would stay behind is looked for…</p>`}
    ${leaves && html`<p>Cells, mailboxes and timers return to what they were after #${snap.at}. ${number(leaves.prior_journal_len - snap.at)} records are left behind${leaves.events > 0 ? `, with ${number(leaves.events)} events that came meanwhile` : ""}. Time, the ledger, budgets and rules do not return.</p>`}
    ${leaves?.abandoned.length > 0 && html`<h2 class="sub">Done outside, or under way</h2><${Effects} of=${leaves.abandoned} />`}
    ${leaves?.reads.length > 0 && html`<h2 class="sub">Only read</h2><${Effects} of=${leaves.reads} />`}
    ${some2 && html`<${Check} name="These stay as they are said to, and I know it" of=${ack} set=${setAck} />`}
  <//>`;
}
function Fork({ world, record: record2, name, close }) {
  const [id, setId] = useState("");
  const [effects, setEffects] = useState("hold");
  const [seed, setSeed] = useState("");
  const [live, setLive] = useState("");
  const kinds = effects !== "hold" ? live.split(/[\s,]+/).filter((k5) => k5 !== "") : [];
  const send = () => post(pathOf(world, "fork"), { id: id.trim(), at: String(record2.id), effects, live: kinds, ...seed ? { seed: parse(seed) } : {} });
  const done = (is) => html`<p class="good" role="status">✓ ${spelled(is.world_id)} is forked after #${is.at}. Whoever serves worlds here says whether it is served, too.</p>`;
  return html`<${Form2} name=${"Fork after " + spelled(name)} ready=${id.trim() !== "" && /^\d*$/.test(seed)} send=${send} done=${done} close=${close}
    command=${`worldctl fork ${word(beside(world, id.trim() || "try"))} --at ${word(name)}${effects === "hold" ? "" : " --effects " + effects}${kinds.map((k5) => " --live " + word(k5)).join("")}${seed ? " --seed " + word(seed) : ""}`}>
    <${Field} name="Its id, and the name of its directory" of=${id} set=${setId} hint="try" />
    <label>New effects of the fork<select value=${effects} onChange=${(e4) => setEffects(e4.target.value)}>
      <option value="hold">wait for a person</option><option value="recorded">are answered by what this world has recorded</option>
      <option value="live">are performed</option></select></label>
    ${effects !== "hold" && html`<${Field} name=${effects === "live" ? "Kinds of effects that are performed, for real" : "Kinds that are performed, for real, where nothing recorded answers"} of=${live} set=${setLive} hint="model.ask, tool.*" />`}
    <${Field} name="Another seed, if its randomness shall be another" of=${seed} set=${setSeed} hint="a number" />
  <//>`;
}
function eventsOf(text3) {
  return text3.split("\n").map((l4, i4) => [l4.trim(), i4 + 1]).filter(([l4]) => l4 !== "").map(([l4, i4]) => {
    try {
      return parse(String(l4));
    } catch {
      throw new Error(`line ${i4} is no JSON`);
    }
  });
}
function WhatIf({ world, record: record2, name, close }) {
  const [text3, setText] = useState("");
  const [only, setOnly] = useState(false);
  const [seed, setSeed] = useState("");
  const send = async () => post(pathOf(world, "what-if"), { at: String(record2.id), events: eventsOf(text3), only, ...seed ? { seed: parse(seed) } : {} });
  return html`<${Form2} name=${"What if, after " + spelled(name)} ready=${/^\d*$/.test(seed) && (text3.trim() !== "" || only || seed !== "")} send=${send} done=${(is) => html`<${Supposed} of=${is} world=${world} />`} close=${close}
    command=${`worldctl what-if --at ${word(name)}${text3.trim() ? " --send -" : ""}${only ? " --only" : ""}${seed ? " --seed " + word(seed) : ""}`}>
    <p>A copy of the world goes on from there, is answered by what was recorded, and is gone afterwards. Nothing outside is touched.</p>
    <label>Events that it gets then, a line of JSON each<textarea rows="3" placeholder='{"event": "ticket.opened", "data": {"customer": "ada"}}' value=${text3} onInput=${(e4) => setText(e4.target.value)}></textarea></label>
    <${Check} name="Without what the world really got from there on" of=${only} set=${setOnly} />
    <${Field} name="Another seed" of=${seed} set=${setSeed} hint="a number" />
  <//>`;
}
function Supposed({ of, world }) {
  return html`<h2 class="sub">${of.same ? "Nothing would be different" : of.diff.same ? "Nothing that can be known would be different" : "It would be different"}</h2>
    <dl class="facts">
      <${Fact} name="events">${number(of.sent)} new, ${number(of.again.events)} sent again${of.again.refused > 0 ? `, ${number(of.again.refused)} refused` : ""}<//>
      ${of.again.decided > 0 && html`<${Fact} name="decided">${number(of.again.decided)} approved or denied, as a person did about the same<//>`}
      ${of.again.left_out?.length > 0 && html`<${Fact} name="left out">what persons decided and is not repeated: ${of.again.left_out.map((l4) => number(l4.records) + " " + spelled(l4.kind)).join(", ")}<//>`}
      <${Fact} name="effects">${number(of.answered)} answered by what was recorded${of.stubbed > 0 ? `, ${number(of.stubbed)} by stubs` : ""}<//>
      ${of.unknown.length > 0 && html`<${Fact} name="unknown"><span class="doubt">? ${number(of.unknown.length + of.unknown_more)} ${of.unknown.length + of.unknown_more === 1 ? "cell" : "cells"}, left out of what is compared</span>
        ${of.unknown.map((u4) => html`<div key=${u4.cell}><b>${line(u4.cell, 60)}</b> after ${atTick(u4.tick)}: ${because(u4)}${u4.why === "asks" && html` <${Whole} of=${u4.effect.params} />`}</div>`)}<//>`}
    </dl>
    ${of.diff && html`<${Difference} of=${of.diff} worlds=${[world, ""]} />`}`;
}
var because = (u4) => u4.why === "asks" ? `nothing recorded answers ${line(u4.effect.kind, 60)}` : u4.why === "told" ? `${line(u4.of, 60)} tells it something` : u4.why === "waits" ? `it waits for ${line(u4.of, 60)}` : `what it asks for has no room beside what ${line(u4.of, 60)} asks for`;
function Effects({ of }) {
  return html`<div class="scroll" tabindex="0" role="region" aria-label="Side effects"><table>
    <thead><tr><th>effect</th><th>cell</th><th>state</th><th>becomes</th><th>record</th></tr></thead>
    <tbody>${of.map((e4) => html`<tr key=${e4.key}><td><b>${line(e4.kind, 60)}</b> <a href=${there("inbox", { of: e4.key, at: "" })}>${short(e4.key, 8)}</a></td><td>${line(e4.cell, 60)}</td><td>${spelled(e4.state)}</td><td>${spelled(e4.disposition)}</td><td><a href=${there("records", { of: e4.record })}>#${e4.record}</a></td></tr>`)}</tbody>
  </table></div>`;
}

// lineage.js
var pages = 5;
async function forksOf(world, until2) {
  const found = [];
  let path = pathOf(world, "records") + "?raw=false&kind=world.forked";
  for (let n4 = 0; path && n4 < pages; n4++) {
    const page2 = await get(path, until2);
    found.push(...page2.records);
    path = page2.next;
  }
  return found;
}
function useKin() {
  const [kin, setKin] = useState(
    /** @type {Map<string, Kin>} */
    /* @__PURE__ */ new Map()
  );
  A2(() => {
    const end = new AbortController();
    (async () => {
      const { worlds } = await get("/api/worlds", end.signal);
      const found = /* @__PURE__ */ new Map();
      const know = (id, is) => found.set(id, { id, name: "", served: false, parent: "", at: 0, effects: "", ...found.get(id), ...is });
      for (const w5 of worlds) know(w5.id, { name: w5.name, served: true });
      for (const w5 of worlds.filter((w6) => w6.open)) {
        for (const r4 of await forksOf(w5.id, end.signal).catch(() => [])) {
          const p5 = r4.payload ?? {};
          know(p5.parent, {});
          know(p5.world, { parent: p5.parent, at: p5.at, effects: p5.effects });
        }
      }
      setKin(found);
    })().catch(() => {
    });
    return () => end.abort();
  }, []);
  return kin;
}
function Tree({ world }) {
  const kin = useKin();
  let root = kin.get(world);
  for (let n4 = 0; root?.parent && kin.has(root.parent) && n4 < kin.size; n4++) root = kin.get(root.parent);
  if (!root || !root.parent && ![...kin.values()].some((k5) => k5.parent === root?.id)) return null;
  return html`<h2 class="sub">Where it comes from</h2><ul class="tree"><${Branch} of=${root} kin=${kin} world=${world} depth=${0} /></ul>`;
}
function Branch({ of, kin, world, depth }) {
  const forks = depth < 20 ? [...kin.values()].filter((k5) => k5.parent === of.id).sort((a4, b4) => a4.at - b4.at) : [];
  const name = html`${of.name ? line(of.name, 40) + " " : ""}<code>${short(line(of.id, 64), 16)}</code>`;
  return html`<li>
    ${of.id === world ? html`<b>${name}</b>` : of.served ? html`<a href=${address(of.id, "history")}>${name}</a>` : html`<span class="dim">${name}, not served here</span>`}
    ${of.parent && html` <small>after #${number(of.at)}, effects: ${line(of.effects, 30)}</small>`}
    ${of.served && of.id !== world && html` <a href=${address(world, "compare", { a: "head", with: of.id })}>compare</a>`}
    ${forks.length > 0 && html`<ul>${forks.map((k5) => html`<${Branch} key=${k5.id} of=${k5} kin=${kin} world=${world} depth=${depth + 1} />`)}</ul>`}
  </li>`;
}

// history.js
var [most4, parts] = [200, 60];
var marks2 = /^(world\.(created|forked)|snapshot\.created|rollback\.applied|manifest\.applied)/;
function History({ world, status }) {
  const { of, version } = columns.value;
  const back = useRollbacks(world);
  const left2 = useMemo(() => leftBehind(back, of.n), [back, of, version]);
  const all2 = useMemo(() => idsOf(of, marks2), [of, version]);
  const shown2 = all2.slice(-most4).reverse();
  const chosen = Number(place.value.of.of || at() && recordAt(of) || shown2[0] || 0);
  const { is, error } = useRecords(world, chosen > 0 && chosen <= of.n ? [...shown2, chosen] : shown2);
  const list = useAnswer(pathOf(world, "snapshots") + "?limit=1000");
  const snaps = new Map((list.is?.snapshots ?? []).map((s4) => [s4.record, s4]));
  const [making, setMaking] = useState(false);
  const changes = may("admin") && !at();
  useKey("n", () => setMaking(true), changes);
  const items = shown2.map((id) => ({ id: String(id), href: here({ of: id }), body: is.has(id) ? html`<${Row} of=${is.get(id)} snap=${snaps.get(id)} left=${left2(pastOf(is.get(id)))} />` : "#" + id }));
  return html`<${Head} title="History" about=${number(snaps.size) + (snaps.size === 1 ? " snapshot is kept, " : " snapshots are kept, ") + number(back.length) + (back.length === 1 ? " rollback" : " rollbacks")}>
      ${changes && html`<button type="button" onClick=${() => setMaking(true)}>make a snapshot <kbd>n</kbd></button>`}
    <//>
    <${Past} back=${back} head=${of.n} />
    <div class="two">
      <section class="side">
        <${Trouble} of=${error ?? list.error} />
        <${List} label="History" items=${items} chosen=${String(chosen)} />
        ${all2.length > most4 && html`<p class="pad dim">${number(all2.length - most4)} before them.</p>`}
        <footer><${CommandNow} line="worldctl snapshot list" /></footer>
      </section>
      <section class="main">
        ${making && html`<div class="pad"><${Snap} world=${world} close=${() => setMaking(false)} /></div>`}
        ${chosen > 0 && is.get(chosen) && html`<${Moment2} key=${chosen} world=${world} record=${is.get(chosen)} snap=${snaps.get(chosen)} left=${left2(pastOf(is.get(chosen)))} known=${list.is !== null} />`}
        <div class="pad"><${Tree} world=${world} name=${status?.world} /></div>
      </section>
    </div>`;
}
var pastOf = (r4) => r4.kind === "snapshot.created" ? r4.payload?.at ?? r4.id : r4.id;
function Past({ back, head }) {
  if (back.length === 0 || head === 0) return null;
  const line2 = [];
  let next = 1;
  for (const [from, to] of kept2(back, head).reverse()) {
    if (from > next) line2.push({ from: next, to: from - 1, by: from });
    line2.push({ from, to, by: 0 });
    next = to + 1;
  }
  return html`<nav class="past" aria-label="The journal, with what was left behind">${line2.slice(-parts).map((p5) => {
    const text3 = `#${p5.from} to #${p5.to}` + (p5.by ? `, left behind by the rollback #${p5.by}` : "");
    return html`<a key=${p5.from} href=${here({ of: p5.by || p5.from })} title=${text3} class=${p5.by ? "hatched" : ""} style=${{ flexGrow: Math.log2(2 + p5.to - p5.from) }}><span class="gone">${text3}</span><span aria-hidden="true">#${p5.from}</span></a>`;
  })}</nav>`;
}
function about(r4) {
  const p5 = r4.payload ?? {};
  switch (r4.kind) {
    case "snapshot.created":
      return line(p5.name, 60);
    case "rollback.applied":
      return "back to " + line(p5.snapshot, 60);
    case "world.forked":
      return "forked from " + line(p5.parent, 20);
    case "world.created":
      return "the world is made";
    case "manifest.applied":
      return "other rules";
  }
  return line(r4.what, 80);
}
function Row({ of, snap, left: left2 }) {
  const more = {
    "snapshot.created": (snap ? snap.pinned ? "pinned" : "kept" : "let go") + (of.payload?.label ? ": " + line(of.payload.label, 80) : ""),
    "rollback.applied": `#${of.payload?.snapshot_journal_len + 1} to #${of.id - 1} are left behind: ${line(of.payload?.reason ?? "", 80)}`
  }[
    /** @type {string} */
    of.kind
  ];
  return html`<span class=${left2 ? "hatched mark-row" : "mark-row"}><span><${Mark} of=${of} /> <b>${about(of)}</b> <small class="when">${when(of.time)} #${of.id}</small></span>${more && html`<small>${more}</small>`}${left2 > 0 && html`<small>left behind by the rollback #${left2}</small>`}</span>`;
}
function Moment2({ world, record: record2, snap, left: left2, known: known3 }) {
  const [form, setForm] = useState(
    /** @type {{of: any, about: any, name: string} | null} */
    null
  );
  const [error, setError] = useState(
    /** @type {Error | null} */
    null
  );
  const { forks } = useAnswer("/api/worlds", true).is ?? {};
  const name = snap ? snap.name : "#" + record2.id;
  const begin2 = (of) => setForm((was) => was ?? { of, about: snap, name });
  const pin = async () => {
    setError(null);
    try {
      await post(pathOf(world, "snapshots", "pin"), { snapshot: snap.hash, pinned: !snap.pinned });
    } catch (err) {
      setError(
        /** @type {Error} */
        err
      );
    }
    grown.value++;
  };
  const p5 = record2.payload ?? {};
  return html`<${Head} title=${html`<${Mark} of=${record2} /> ${about(record2)}`} about=${`${when(record2.time)} #${record2.id}`}>
      ${!copy && html`<a href=${there("compare", { a: record2.id, at: "" })}>compare with now</a>`}
      <a href=${there("timeline", { of: record2.id })}>timeline</a>
    <//>
    <div class="pad">
      <p class="sentence">${spelled(record2.what)}</p>
      <dl class="facts">
        ${left2 > 0 && html`<${Fact} name="left behind">by the rollback <a href=${here({ of: left2 })}>#${left2}</a>: it is not the past of what is now<//>`}
        ${p5.label && html`<${Fact} name="label">${line(p5.label, 400)}<//>`}
        ${p5.reason && html`<${Fact} name="reason">${line(p5.reason, 400)}<//>`}
        ${p5.actor && html`<${Fact} name="by">${line(p5.actor, 80)}<//>`}
        ${record2.kind === "snapshot.created" && html`<${Fact} name="stands">${snap ? snap.pinned ? "kept, whatever the retention says" : "kept" : known3 ? "let go: nobody can return to it" : ""}<//>`}
        ${p5.state_root && html`<${Fact} name="state root"><code>${p5.state_root}</code><//>`}
        ${p5.parent && html`<${Fact} name="parent">${line(p5.parent, 80)}, up to #${p5.at}; effects: ${line(p5.effects, 30)}<//>`}
      </dl>
      <${Trouble} of=${error} />
      ${may("admin") && !form && html`<div class="buttons">
        ${snap && !at() && html`<${Way} hot="b" name="Roll back to it" of=${RollBack} begin=${begin2} />`}
        ${forks && html`<${Way} hot="f" name="Fork here" of=${Fork} begin=${begin2} />`}
        <${Way} hot="w" name="What if…" of=${WhatIf} begin=${begin2} />
        ${snap && !at() && html`<button type="button" onClick=${pin}>${snap.pinned ? "Let the retention decide" : "Pin"}</button><${Way} hot="x" name="Prune" of=${Prune} begin=${begin2} />`}
      </div>`}
      ${form && html`<${form.of} world=${world} snap=${form.about} record=${record2} name=${form.name} gone=${known3 && form.about && !snap} close=${() => setForm(null)} />`}
      ${p5.abandoned?.length > 0 && html`<h2 class="sub">What was done in the part that it left behind</h2><${Effects} of=${p5.abandoned} />`}
      <footer><${Command} line=${snap ? `worldctl snapshot show ${word(name)}` : "worldctl why " + record2.id} /></footer>
    </div>`;
}
function Way({ hot, name, of, begin: begin2 }) {
  useKey(hot, () => begin2(of));
  return html`<button type="button" onClick=${() => begin2(of)}>${name} <kbd>${hot}</kbd></button>`;
}

// batch.js
var deny = { name: "Deny all", key: "d", verb: "deny", kind: "no", needs: true };
var ways = {
  awaiting_approval: [{ name: "Approve all", key: "a", verb: "approve", kind: "yes", needs: true }, deny],
  awaiting_answer: [deny],
  awaiting_confirmation: [deny],
  in_doubt: [
    { name: "All happened", key: "y", verb: "resolve", kind: "yes", needs: true, body: { executed: true }, flag: " --executed" },
    { name: "None happened", key: "n", verb: "resolve", kind: "no", needs: true, body: { executed: false }, flag: " --not-executed" }
  ]
};
function Batch({ world, kind: kind2, state }) {
  const [cell2, setCell] = useState("");
  const [form, setForm] = useState(
    /** @type {{way: any, about: any} | null} */
    null
  );
  const [error, setError] = useState(
    /** @type {Error | null} */
    null
  );
  const [done, setDone] = useState("");
  const ask3 = (way, more) => post(pathOf(world, "intents", way.verb), { kind: kind2, cell: cell2, state, ...way.body, ...more });
  const begin2 = async (way) => {
    setDone("");
    await ask3(way, {}).then((about2) => (setForm({ way, about: about2 }), setError(null)), setError);
  };
  const of = form?.about;
  const all2 = of?.intents.length ?? 0;
  return html`<${Head} title=${spelled(kind2)} about="all that wait"><a href=${here({ all: "", state: "" })}>one by one</a><//>
    <div class="pad whole">
      ${!form && html`<label>Only of cells <input value=${cell2} placeholder="all, or desk/*" onInput=${(e4) => setCell(e4.target.value)} /></label>
        <${Ways} of=${ways[
    /** @type {keyof typeof ways} */
    state
  ] ?? []} begin=${begin2} />`}
      <${Trouble} of=${error} />
      ${done && html`<p role="status">${done}</p>`}
      ${form && html`<p>${number(all2)} are meant${of.more > 0 && `, and ${number(of.more)} more are left for another time`}${of.refused.length > 0 && `; ${number(of.refused.length)} cannot be decided so`}:</p>
        <ol class="story">${of.intents.map((x3) => html`<li key=${x3.key}><b>${spelled(x3.cell)}</b> <code>${x3.key.slice(0, 12)}</code><${Value} of=${x3.params} whole=${true} /></li>`)}</ol>
        <${Form} world=${world} way=${form.way} about=${`${number(all2)} × ${kind2}`} meanwhile=${all2 ? "" : "none of them waits any more"} close=${() => setForm(null)}
          send=${(reason) => ask3(form.way, { digest: of.digest, reason }).then((is) => setDone(`Decided about ${number(is.intents.length)}.`))}
          line=${(reason) => `worldctl intent ${form.way.verb}${form.way.flag ?? ""} --kind ${word(kind2)} --state ${state}${cell2 ? " --cell " + word(cell2) : ""} --digest ${of.digest} --reason ${reason}`} />`}
    </div>`;
}

// inbox.js
var wanted = {
  approve: ["awaiting_approval", "awaits approval"],
  repeat: ["awaiting_approval", "repeat?"],
  answer: ["awaiting_answer", "asks"],
  confirm: ["awaiting_confirmation", "confirm"],
  resolve: ["in_doubt", "in doubt"],
  resume: ["failed", "cell halted"]
};
function Inbox({ world }) {
  if (world && at()) return html`<${Past2} world=${world} />`;
  return html`<${Present} world=${world} />`;
}
var until = (o4) => o4.intent?.deadline || Number.MAX_SAFE_INTEGER;
function Present({ world }) {
  const { is, error } = useAnswer("/api/inbox?limit=1000");
  const worlds = useAnswer(world ? null : "/api/worlds");
  const names = new Map((worlds.is?.worlds ?? []).map((w5) => [w5.id, w5.name]));
  const called = (id2) => spelled(names.get(id2) ?? "") + " · " + short(id2, 6);
  const all2 = (is?.owed ?? []).filter((o4) => !world || o4.world === world);
  all2.sort((a4, b4) => until(a4) - until(b4));
  const idOf = (o4) => (world ? "" : o4.world + "/") + (o4.intent ? o4.intent.key : "cell:" + o4.cell);
  const chosen = place.value.of.of || (all2.length > 0 ? idOf(all2[0]) : "");
  F2(() => {
    if (chosen && !where().of.of) amend({ of: chosen });
  }, [chosen, place.value.of.of]);
  const items = all2.map((o4) => {
    const [state, name] = wanted[
      /** @type {keyof typeof wanted} */
      o4.wants
    ];
    return {
      id: idOf(o4),
      href: here({ of: idOf(o4), all: "" }),
      body: html`<b><${State} of=${state} name=${name} /> ${spelled(o4.intent?.kind ?? o4.cell)}</b>
        <span>${!world && html`${called(o4.world)} · `}${o4.intent ? html`${spelled(o4.cell)} <code>${line(calledOf(o4.intent.params) ?? o4.intent.params, 60)}</code>` : line(o4.failure?.error ?? "", 60)}</span>`
    };
  });
  const slash = world ? -1 : chosen.indexOf("/");
  const [of, id] = world ? [world, chosen] : [chosen.slice(0, slash), chosen.slice(slash + 1)];
  const alike = all2.filter((o4) => o4.world === of);
  return html`<div class="two">
    <section class="side">
      <${Head} title="Inbox" about=${is ? (all2.length || "nothing") + (is.next ? " or more" : "") + (all2.length > 1 ? " wait" : " waits") + " for a person" : ""} />
      <${Trouble} of=${error} />
      <${List} label="Inbox" items=${items} chosen=${chosen} />
      <footer>${linesOf(all2).map((l4) => html`<${Command} key=${l4} world=${of} line=${l4} />`)}</footer>
    </section>
    <section class="main">${!world && of && html`<p class="in">in <a href=${address(of, "inbox")}>${called(of)}</a></p>`}${place.value.of.all ? html`<${Batch} key=${of + place.value.of.all} world=${of} kind=${place.value.of.all} state=${place.value.of.state ?? "awaiting_approval"} />` : chosen && of && (id.startsWith("cell:") ? html`<${HaltedCell} key=${chosen} world=${of} cell=${id.slice(5)} />` : html`<${Intent} key=${chosen} world=${of} id=${id} alike=${alike} />`)}</section>
  </div>`;
}
var lines = {
  awaiting_approval: "worldctl intent list --state awaiting_approval",
  awaiting_answer: "worldctl intent list --state awaiting_answer",
  awaiting_confirmation: "worldctl intent list --state awaiting_confirmation",
  in_doubt: "worldctl intent list --state in_doubt",
  failed: "worldctl cell list"
};
function linesOf(owed) {
  const states = new Set(owed.map((o4) => wanted[
    /** @type {keyof typeof wanted} */
    o4.wants
  ][0]));
  return Object.entries(lines).filter(([state]) => states.has(state) || states.size === 0 && state === "awaiting_approval").map(([, l4]) => l4);
}
function HaltedCell({ world, cell: cell2 }) {
  const { is, error } = useAnswer(pathOf(world, "cell") + `?cell=${encodeURIComponent(cell2)}&mail=1`);
  if (!is) return html`<${Trouble} of=${error} />`;
  return html`<${Head} title=${spelled(cell2)} about=${is.halted ? html`<em class="halted">halted</em>` : "goes on"}><a href=${address(world, "cells", { of: cell2 })}>the cell</a><//>
    <div class="pad whole">
      ${is.failure && html`<h2>A step of ${spelled(cell2)} failed</h2><pre class="block">${spelled(is.failure.error)}</pre>`}
      <${Stuck} world=${world} of=${is} />
      ${is.failure && html`<h2 class="sub">How it came to this</h2><${Story} world=${world} from=${is.failure.record} />`}
      <footer><${Command} world=${world} line=${"worldctl cell show " + word(cell2)} /></footer>
    </div>`;
}
function Intent({ world, id, alike }) {
  const path = /^[0-9a-f]{4,64}$/.test(id) ? pathOf(world, "intents", id) : null;
  const { is, error } = useAnswer(path);
  const [whole2, setWhole] = useState(false);
  const [form, setForm] = useState(
    /** @type {{way: any, about: any} | null} */
    null
  );
  if (path === null) return html`<${Trouble} of=${new Error("that is no key of an intent")} />`;
  if (!is && !form) return html`<${Trouble} of=${error} />`;
  const x3 = is ?? form?.about;
  const asks = x3.asks?.at(-1);
  const asked2 = asks && asks.answer === null ? asks.requests : [];
  const cut2 = !whole2 && [x3.params, ...asked2.flatMap((r4) => [r4.message, r4.schema])].some((v5) => isCut(v5));
  return html`<${Head} title=${html`<code>${short(x3.key)}</code>`} about=${html`<${State} of=${x3.state} />`}>
      <a href=${address(world, "records", { of: x3.emitted })}>#${x3.emitted} in the journal</a>
    <//>
    <div class="pad whole">
      <h2>${spelled(x3.cell)} wants <b>${spelled(x3.kind)}</b></h2>
      <div class="box"><${Value} of=${readable(x3.params)} whole=${whole2} /></div>
      ${asked2.map((r4) => html`<div class="form" key=${r4.name}><b>It asks</b>: <${Value} of=${r4.message} whole=${whole2} />${r4.schema && html`<${Value} of=${r4.schema} whole=${whole2} />`}</div>`)}
      ${cut2 && html`<${ShowAll} act=${() => setWhole(true)} />`}
      <${Facts} of=${x3} world=${world} />
      <${Trouble} of=${error} />
      ${form ? html`<${Decide} world=${world} path=${path} way=${form.way} about=${form.about} now=${x3} close=${() => setForm(null)} />` : !cut2 && html`<${Ways} of=${waysOf(x3)} begin=${(way) => is && setForm({ way, about: is })} /><${Alike} of=${x3} among=${alike} />`}
      <h2 class="sub">How it came to this</h2>
      <${Story} world=${world} from=${x3.finished || x3.started || x3.emitted} />
      <footer><${Command} world=${world} line=${"worldctl intent show " + short(x3.key)} /></footer>
    </div>`;
}
function Facts({ of, world }) {
  return html`<dl class="facts">
    ${of.rules?.length > 0 && html`<${Fact} name="decided by">${of.rules.map(spelled).join(", ")}<//>`}
    ${of.reason && html`<${Fact} name="what is owed">${spelled(of.reason)}<//>`}
    ${of.deadline > 0 && html`<${Fact} name="until">${atTick(of.deadline, world)}, then it is denied<//>`}
    ${of.repeats && html`<${Fact} name="repeats"><a href=${address(world, "inbox", { of: of.repeats })}><code>${short(of.repeats)}</code></a>, which a rollback left behind<//>`}
    ${of.cap && html`<${Fact} name="capability">${spelled(of.cap)}<//>`}
    ${of.attempts?.length > 0 && html`<${Fact} name="attempts">${of.attempts.length}<//>`}
    <${Fact} name="bound to"><code>${short(of.params_hash)}…</code> these params and no others<//>
  </dl>`;
}
function Alike({ of, among }) {
  const n4 = among.filter((o4) => o4.intent?.kind === of.kind && o4.intent.state === of.state).length;
  const to = here({ all: of.kind, state: of.state });
  useKey("A", () => lead(to), n4 > 1);
  return n4 > 1 && html`<p><a href=${to}>Decide about all ${n4} that want ${spelled(of.kind)} <kbd>A</kbd></a></p>`;
}
var [approve, deny2, edit] = [
  { name: "Approve", key: "a", verb: "approve", kind: "yes" },
  { name: "Deny", key: "d", verb: "deny", kind: "no", needs: true },
  { name: "Other params", key: "e", verb: "edit", kind: "yes", needs: true, field: "What is to be asked for in its place, as JSON", name2: "params" }
];
var ways2 = {
  approve: [approve, deny2, edit],
  repeat: [approve, { name: "Give it the first result", key: "u", verb: "approve", kind: "yes", body: { reuse: true }, flag: "--reuse" }, deny2],
  answer: [{ name: "Answer", key: "a", verb: "answer", kind: "yes", free: true, field: "The answer, as JSON", name2: "data" }, deny2],
  confirm: [{ name: "It is as it should be", key: "a", verb: "confirm", kind: "yes", needs: true }, deny2],
  resolve: [
    { name: "It happened", key: "y", verb: "resolve", kind: "yes", needs: true, free: true, body: { executed: true }, flag: "--executed" },
    { name: "It did not", key: "n", verb: "resolve", kind: "no", needs: true, free: true, body: { executed: false }, flag: "--not-executed" },
    { name: "Try again", key: "r", verb: "retry", kind: "no", needs: true }
  ],
  failed: [{ name: "Try again", key: "r", verb: "retry", kind: "yes", needs: true }]
};
function waysOf(of) {
  if (of.state === "in_doubt") return ways2.resolve;
  if (of.state === "awaiting_answer") return ways2.answer;
  if (of.state === "awaiting_confirmation") return ways2.confirm;
  if (of.state === "awaiting_approval") return of.repeats ? ways2.repeat : ways2.approve;
  return of.state === "failed" ? ways2.failed : [];
}
function changed(was, is) {
  if (was.state !== is.state) return `it was ${was.state.replace("_", " ")}, and is ${is.state.replace("_", " ")} now`;
  if (was.attempt !== is.attempt) return `it was at attempt ${was.attempt}, and is at ${is.attempt} now`;
  if (was.params_hash !== is.params_hash) return "its params are others now";
  return "";
}
function Decide({ world, path, way, about: about2, now, close }) {
  const send = (reason, data) => post(`${path}/${way.verb}`, {
    ...way.body,
    reason,
    attempt: about2.attempt,
    ...way.free ? {} : { params_hash: about2.params_hash },
    ...way.field ? { [way.name2]: parse(data) } : {}
  });
  const meanwhile = changed(about2, now);
  return html`${meanwhile && html`<${Other} world=${world} of=${about2} />`}<${Form} world=${world} way=${way} about=${about2.kind + " for " + about2.cell} meanwhile=${meanwhile} close=${close} send=${send}
    first=${way.verb === "edit" ? JSON.stringify(about2.params, null, 2) : ""}
    line=${(reason, data) => `worldctl intent ${way.verb} ${short(about2.key)}${way.flag ? " " + way.flag : ""}${way.field ? ` --${way.name2} ${data}` : ""} --reason ${reason}`} />`;
}
function Other({ world, of }) {
  const { is } = useAnswer(pathOf(world, "records") + `?raw=false&kind=intent.resolved&cell=${encodeURIComponent(of.cell)}&before=${Number.MAX_SAFE_INTEGER}&limit=50`);
  const theirs = is?.records.findLast((r4) => r4.key === of.key);
  return theirs && html`<p class="trouble">Theirs: <a href=${there("records", { of: theirs.id })}>#${theirs.id}</a> ${sentence(theirs)}</p>`;
}
function Past2({ world }) {
  const { of } = columns.value;
  const owed = owedAt(of, Math.min(recordAt(of), of.n));
  const shown2 = owed.slice(-100);
  const { is, error } = useAnswer(shown2.length ? pathOf(world, "records") + `?raw=false&ids=${shown2.map((i4) => i4 + 1).join()}` : null, true);
  return html`<${Head} title="Inbox" about=${(owed.length || "nothing") + " waited for a person then"} />
    <div class="pad">
      <${Trouble} of=${error} />
      <ol class="story">${(is?.records ?? []).map((r4) => html`<li key=${r4.id}><a href=${there("records", { of: r4.id })}>#${r4.id}</a> <${Mark} of=${r4} /> <b>${spelled(r4.kind)}</b> <small>${when(r4.time)}</small>
        <p>${sentence(r4)}</p>${r4.key && html`<a href=${address(world, "inbox", { of: r4.key })}>what has become of it</a>`}</li>`)}</ol>
      <footer><${CommandNow} line="worldctl intent list --state awaiting_approval" /></footer>
    </div>`;
}
function owedAt(of, n4) {
  const is = of.whats.map((w5) => /^intent\.(awaiting_approval|in_doubt)/.test(w5) ? 1 : /^cell\.failed halted/.test(w5) ? 2 : /^cell\.resumed/.test(w5) ? 4 : /^intent\.denied approval_expired/.test(w5) ? 3 : 0);
  const owed = /* @__PURE__ */ new Set();
  for (let i4 = 0; i4 < n4; i4++) {
    owed.delete(of.cause[i4] - 1);
    const kind2 = is[of.what[i4]];
    if (kind2 === 1 || kind2 === 2) owed.add(i4);
    if (kind2 < 3) continue;
    for (const k5 of owed) {
      if (of.cell[k5] !== of.cell[i4] || is[of.what[k5]] !== (kind2 === 3 ? 1 : 2) || kind2 === 3 && of.name[k5] !== of.name[i4]) continue;
      owed.delete(k5);
      break;
    }
  }
  return [...owed];
}

// chart.js
var [wide, high, left, below] = [640, 120, 56, 18];
function Chart({ title, ticks, lines: lines2 }) {
  const shown2 = lines2.filter((l4) => l4.of.some((v5) => v5 > 0));
  if (ticks.length === 0 || shown2.length === 0) return null;
  const [first2, last] = [ticks[0].from, ticks[ticks.length - 1].to];
  const most5 = Math.max(...shown2.map((l4) => Math.max(...l4.of)));
  const x3 = (i4) => left + ((ticks[i4].from + ticks[i4].to) / 2 - first2 + 0.5) * ((wide - left) / (last - first2 + 1));
  const y5 = (v5) => 8 + (high - 8) * (1 - v5 / most5);
  const clicked = (e4) => {
    const box = (
      /** @type {Element} */
      e4.currentTarget.getBoundingClientRect()
    );
    const at3 = (e4.clientX - box.left) / box.width * wide;
    const i4 = ticks.reduce((best, _4, k5) => Math.abs(x3(k5) - at3) < Math.abs(x3(best) - at3) ? k5 : best, 0);
    lead(there("timeline", { at: "t" + ticks[i4].to }));
  };
  const sum = shown2.map((l4) => l4.name + " at most " + number(Math.max(...l4.of))).join(", ");
  return html`<figure class="chart"><figcaption>${title} ${shown2.map((l4) => html`<span key=${l4.name} class=${"key " + l4.color}>${l4.name}</span>`)}</figcaption>
    <svg viewBox=${`0 0 ${wide} ${high + below}`} role="img" aria-label=${`${title}, ${atTick(first2)} to ${atTick(last)}: ${sum}`} onClick=${clicked}>
      ${[.../* @__PURE__ */ new Set([0, Math.round(most5 / 2), most5])].map((v5) => html`<g key=${v5}><line x1=${left} x2=${wide} y1=${y5(v5)} y2=${y5(v5)} /><text x=${left - 6} y=${y5(v5) + 4} text-anchor="end">${number(v5)}</text></g>`)}
      <text x=${left} y=${high + 14}>${when(first2)}</text><text x=${wide} y=${high + 14} text-anchor="end">${when(last)}</text>
      ${shown2.map((l4) => html`<g key=${l4.name} class=${l4.color}><polyline points=${l4.of.map((v5, i4) => x3(i4).toFixed(1) + "," + y5(v5).toFixed(1)).join(" ")} />
        ${ticks.length <= 60 && l4.of.map((v5, i4) => html`<circle key=${i4} cx=${x3(i4)} cy=${y5(v5)} r="2"><title>${when(ticks[i4].to)}: ${number(v5)} ${l4.name}</title></circle>`)}</g>`)}
    </svg></figure>`;
}
function sums(of) {
  let sum = 0;
  return of.map((v5) => sum += v5);
}

// meters.js
function Meters({ world }) {
  const { is, error } = useAnswer(pathOf(world, "series") + "?buckets=200&limit=30" + (at() ? "&to=" + encodeURIComponent(at()) : ""));
  const budgets = useAnswer(pathOf(world, "budgets") + "?limit=1000");
  const rules = useAnswer(pathOf(world, "manifest"), true);
  const ticks = (is?.ticks ?? []).filter((t5) => t5.to > 0 || !isReal());
  return html`<${Head} title="Meters" about=${is && (ticks.length ? isReal() ? `${when(ticks[0].from)} to ${when(ticks[ticks.length - 1].to)}` : `ticks ${number(ticks[0].from)} to ${number(ticks[ticks.length - 1].to)}` : "nothing has happened")} />
    <${Trouble} of=${error ?? budgets.error} />
    <div class="pad wide">
      <${Along} ticks=${ticks} />
      <${Budgets} of=${budgets.is} ticks=${ticks} />
      <${Costs2} name="kind of effect" of=${is?.kinds} rest=${is?.rest.kinds} />
      <${Costs2} name="model" of=${is && byModel(is.kinds, rules.is?.manifest?.effects ?? {})} />
      <${Costs2} name="cell" of=${is?.cells} rest=${is?.rest.cells} to=${(cell2) => there("cells", { of: cell2 })} />
      ${ticks.length > 0 && html`<details><summary>the ticks as numbers</summary><${Numbers} ticks=${ticks} /></details>`}
      ${budgets.is?.budgets.length === 0 && html`<p class="dim">This world has no budgets.</p>`}<footer><${CommandNow} line="worldctl budget list" /></footer>
    </div>`;
}
var counted = {
  events: /^event\./,
  steps: /^cell\.(stepped|failed|step_failed)/,
  asked: /^intent\.(emitted|awaiting_approval|denied)/,
  ok: /^invocation\.finished ok/,
  bad: /^(invocation\.finished (?!ok)|intent\.in_doubt|intent\.denied|cell\.failed|cell\.step_failed)/
};
var count = (tick, as) => Object.entries(tick.counts).reduce((n4, [what, of]) => counted[as].test(what) ? n4 + Number(of) : n4, 0);
function Along({ ticks }) {
  const of = (as) => ticks.map((t5) => count(t5, as));
  const cost2 = (unit) => sums(ticks.map((t5) => Number(t5.cost[unit] ?? 0)));
  return html`
    <${Chart} title="Steps and events" ticks=${ticks} lines=${[{ name: "steps", color: "ink", of: of("steps") }, { name: "events", color: "event", of: of("events") }]} />
    <${Chart} title="Effects" ticks=${ticks} lines=${[{ name: "asked for", color: "link", of: of("asked") }, { name: "answered", color: "good", of: of("ok") }, { name: "not well", color: "bad", of: of("bad") }]} />
    <${Chart} title="Answers so far" ticks=${ticks} lines=${[{ name: "answers", color: "good", of: cost2("answers") }]} />
    <${Chart} title="Tokens so far" ticks=${ticks} lines=${[{ name: "tokens", color: "link", of: cost2("tokens") }]} />
    <${Chart} title="Money so far, in millionths" ticks=${ticks} lines=${[{ name: "micros", color: "warn", of: cost2("micros") }]} />`;
}
function byModel(kinds, effects) {
  const by = /* @__PURE__ */ new Map();
  for (const k5 of kinds) {
    const model = Object.hasOwn(effects, k5.name) ? effects[k5.name].config?.model : void 0;
    if (typeof model !== "string") continue;
    const sum = by.get(model) ?? { name: model };
    for (const unit of units) sum[unit] = (sum[unit] ?? 0) + Number(k5[unit] ?? 0);
    by.set(model, sum);
  }
  return [...by.values()];
}
var units = ["answers", "tokens", "bytes", "micros"];
function Costs2({ name, of, rest, to }) {
  if (!of?.length) return null;
  const rows = rest?.answers > 0 ? [...of, { ...rest, name: null }] : of;
  const told3 = units.filter((u4) => rows.some((r4) => r4[u4]));
  return html`<h2 class="sub">Cost by ${name}</h2><div class="scroll" tabindex="0" role="region" aria-label=${"cost by " + name}><table>
    <thead><tr><th>${name}</th>${told3.map((u4) => html`<th class="n" key=${u4}>${u4}</th>`)}</tr></thead>
    <tbody>${rows.map((r4, i4) => html`<tr key=${i4}><td>${r4.name === null ? html`<span class="dim">all others</span>` : to ? html`<a href=${to(r4.name)}>${spelled(r4.name)}</a>` : spelled(r4.name)}</td>
      ${told3.map((u4) => html`<td class="n" key=${u4}>${number(r4[u4] ?? 0)}</td>`)}</tr>`)}</tbody>
  </table></div>`;
}
function Budgets({ of, ticks }) {
  const all2 = of?.budgets ?? [];
  if (all2.length === 0) return null;
  const burns = all2.filter((b4) => b4.scope === "world" && b4.renews === 0).flatMap((b4) => b4.units.filter((u4) => units.includes(u4.unit)));
  return html`<h2 class="sub">Budgets ${at() && html`<small>as of now, not of the moment that is looked at</small>`}</h2>
    <div class="scroll" tabindex="0" role="region" aria-label="budgets"><table>
      <thead><tr><th>budget</th><th>unit</th><th class="n">limit</th><th class="n">spent</th><th class="n">held</th><th class="n">left</th><th>so far</th><th class="n">wait</th></tr></thead>
      <tbody>${all2.flatMap((b4) => b4.units.map((u4) => html`<tr key=${b4.scope + b4.name + u4.unit}>
        <td>${spelled(b4.scope)} <b>${spelled(b4.name)}</b></td><td>${spelled(u4.unit)}</td>
        <td class="n">${number(u4.limit)}</td><td class="n">${number(u4.spent)}</td><td class="n">${number(u4.held)}</td><td class="n">${number(u4.left)}</td>
        <td><meter min="0" max=${u4.limit || 1} value=${u4.spent + u4.held} aria-label=${"spent and held of " + spelled(u4.unit)}></meter></td><td class="n">${b4.waiting}</td></tr>`))}</tbody>
    </table></div>
    ${burns.map((u4) => html`<${Chart} key=${u4.unit} title=${"Left of the " + u4.unit + " of the world"} ticks=${ticks}
      lines=${[{ name: "left", color: "warn", of: sums(ticks.map((t5) => Number(t5.cost[u4.unit] ?? 0))).map((spent) => Math.max(0, u4.limit - spent)) }]} />`)}`;
}
function Numbers({ ticks }) {
  const columns2 = (
    /** @type {(keyof typeof counted)[]} */
    Object.keys(counted)
  );
  const told3 = units.filter((u4) => ticks.some((t5) => t5.cost[u4]));
  return html`<div class="scroll" tabindex="0" role="region" aria-label="ticks"><table><thead><tr><th>ticks</th>${columns2.map((c4) => html`<th class="n" key=${c4}>${c4}</th>`)}${told3.map((u4) => html`<th class="n" key=${u4}>${u4}</th>`)}</tr></thead>
    <tbody>${ticks.map((t5) => html`<tr key=${t5.from}><td><a href=${there("timeline", { at: "t" + t5.to })}>${t5.from === t5.to ? when(t5.to) : `${when(t5.from)}–${when(t5.to)}`}</a></td>
      ${columns2.map((c4) => html`<td class="n" key=${c4}>${number(count(t5, c4))}</td>`)}${told3.map((u4) => html`<td class="n" key=${u4}>${number(t5.cost[u4] ?? 0)}</td>`)}</tr>`)}</tbody></table></div>`;
}

// proof.js
function Proof({ world, status }) {
  const snapshots = useAnswer(pathOf(world, "snapshots"));
  return html`<${Head} title="Proof" about=${status ? number(status.head.id) + " records" : ""} />
    <div class="pad">
      ${at() && html`<p class="dim">This is about all records as of now, not of the moment that is looked at.</p>`}
      ${copy ? html`<${Told2} world=${world} status=${status} />` : html`<${Prove} world=${world} status=${status} />`}
      <h2 class="sub">Snapshots</h2>
      ${snapshots.is?.snapshots?.length ? html`<ol class="story">${snapshots.is.snapshots.map((s4) => html`<li key=${s4.record}><a href=${there("history", { of: s4.record })}>#${s4.record}</a> <b>${spelled(s4.name)}</b> <small>${s4.pinned ? "pinned, " : ""}what was after #${s4.at}</small>${s4.label && html`<p>${line(s4.label)}</p>`}</li>`)}</ol>` : html`<p class="dim">There are none.</p>`}
      <footer><${CommandNow} line="worldctl verify" /></footer>
    </div>`;
}
function Prove({ world, status }) {
  const [is, setIs] = useState(
    /** @type {any} */
    null
  );
  const [error, setError] = useState(
    /** @type {Error | null} */
    null
  );
  const [busy, setBusy] = useState(false);
  const verify = async () => {
    setBusy(true);
    setError(null);
    try {
      setIs(await get(pathOf(world, "verify")));
    } catch (err) {
      setError(
        /** @type {Error} */
        err
      );
    }
    setBusy(false);
  };
  return html`<dl class="facts">
      <${Fact} name="chain root"><code>${status?.head.root}</code><//>
      <${Fact} name="anchor">${status?.anchor.ok ? html`<span class="good">✓ the store is what was last said of it, up to #${status.anchor.id}</span>` : html`<span class="bad">✕ it is not what was last said of it</span>`}<//>
    </dl>
    <div class="buttons"><button type="button" class="full yes" disabled=${busy} onClick=${verify}>${busy ? "It is computed anew…" : "Verify: compute everything anew"}</button></div>
    <${Trouble} of=${error} />
    ${is && html`<h2 class="sub">${is.replay_proof_result.ok && is.tool_invocation_ledger_proof.ok ? html`<span class="good">✓ verified</span>` : html`<span class="bad">✕ it does not hold</span>`}</h2>
      <div class="box"><${Value} of=${is} /></div>`}`;
}
function Told2({ world, status }) {
  const { is, error } = useAnswer(pathOf(world, "verify"));
  if (!copy) return null;
  const anchor = status?.anchor.ok ? "the store was what had last been said of it, up to #" + status.anchor.id : "the store was not what had last been said of it";
  return html`<p>This is what ${spelled(copy.by)} said when it made this file, at ${spelled(copy.made)}: ${copy.verified ? "the world held, up to #" + copy.records : html`<b class="bad">the world did not hold</b>`}.</p>
    <p><b>The file proves nothing by itself</b>: whoever passes it on can change it. Who has to be sure asks for a bundle, and verifies that:</p>
    <${Command} line="worldctl export FILE --format bundle" /> <${Command} line="worldctl verify FILE" />
    <dl class="facts">
      <${Fact} name="chain root"><code>${status?.head.root}</code><//>
      <${Fact} name="anchor">${status && anchor}<//>
    </dl>
    <${Trouble} of=${error} />
    ${is && html`<h2 class="sub">What was said</h2><div class="box"><${Value} of=${is} /></div>`}`;
}

// records.js
var page = 200;
function Records({ world, status }) {
  const end = at() ? recordAt(columns.value.of) : 0;
  const head = end || (status?.head?.id ?? 0);
  const of = Number(place.value.of.of || 0);
  const from = Number(place.value.of.from || Math.max(0, (of || head) - page / 2));
  const { is, error } = useAnswer(head ? pathOf(world, "records") + `?raw=false&after=${from}&limit=${page}${end ? "&to=" + end : ""}` : null);
  const records2 = is?.records ?? [];
  const items = records2.map((r4) => ({
    id: String(r4.id),
    href: here({ of: r4.id, from }),
    body: html`<span class="row"><span class="n">#${r4.id}</span><${Tick} of=${r4.time} /><span><${Mark} of=${r4} /> ${spelled(r4.kind)}</span><span class=${"say " + tone(r4)}>${sentence(r4)}</span></span>`
  }));
  return html`<div class="two wide">
    <section class="side">
      <${Head} title="Journal" about=${number(head) + " records"}>
        <a href=${here({ from: Math.max(0, from - page), of: "" })}>earlier</a>
        <a href=${here({ from: from + page, of: "" })}>later</a>
        <a href=${here({ from: "", of: "" })}>now</a>
      <//>
      <${Trouble} of=${error} />
      <${List} label="Records" items=${items} chosen=${String(of)} />
      <footer><${Command} line=${"worldctl tail --from " + (from + 1)} /></footer>
    </section>
    <section class="main">${of > 0 && html`<${Record} key=${of} world=${world} id=${of} />`}</section>
  </div>`;
}
function Record({ world, id }) {
  const { is, error } = useAnswer(pathOf(world, "records", id) + "?raw=false", true);
  const [why, setWhy] = useState(false);
  if (!is) return html`<${Trouble} of=${error} />`;
  const cell2 = is.cells[0];
  const said = is.payload ?? {};
  const matter = said.receipt?.payload ?? said.params ?? said.data;
  return html`<${Head} title=${"#" + id} about=${html`<${Mark} of=${is} /> ${spelled(is.kind)}`} />
    <div class="pad">
      <p class=${"sentence " + tone(is)}>${sentence(is)}</p>
      <dl class="facts">
        <${Fact} name="tick">${is.time}${isReal() && `, ${when(is.time)}`}<//>
        ${cell2 && html`<${Fact} name="cell"><a href=${there("cells", { of: cell2, at: id })}>${spelled(cell2)}</a><//>`}
        ${is.cause > 0 && html`<${Fact} name="caused by"><a href=${here({ of: is.cause })}>#${is.cause}</a><//>`}
        ${is.key && html`<${Fact} name="intent"><a href=${there("inbox", { of: is.key, at: "" })}>${is.key.slice(0, 12)}</a><//>`}
      </dl>
      ${is.key && html`<${Life} world=${world} intent=${is.key} here=${id} />`}
      ${matter !== void 0 && html`<h2 class="sub">${is.kind === "invocation.finished" ? html`It answered <small class=${tone(is)}>${spelled(is.how)}</small>` : "What it says"}</h2><div class="box"><${Value} of=${matter} /></div>`}
      <details open=${matter === void 0}><summary>the record as it is stored</summary><div class="box"><${Value} of=${is.payload} /></div></details>
      <button type="button" aria-expanded=${why} onClick=${() => setWhy(!why)}>Why: the way to the input</button>
      ${why && html`<${Story} world=${world} from=${id} />`}
      <footer><${Command} line=${"worldctl why " + id} /></footer>
    </div>`;
}
function Life({ world, intent, here: shown2 }) {
  const { is } = useAnswer(pathOf(world, "intents", intent));
  if (!is) return null;
  const steps = [{ id: is.emitted, says: "asked for" }, ...is.decisions.map((d5) => ({
    id: d5.record,
    says: d5.how.replace("_", " ") + ", says " + d5.actor + (d5.reason ? ": " + d5.reason : ""),
    payload: d5.payload
  })), ...is.attempts.flatMap((a4) => [
    { id: a4.started, says: "attempt " + a4.attempt + " may go out" },
    { id: a4.expired, says: "it is given up" + (a4.reason ? ": " + a4.reason : "") },
    { id: a4.receipt, says: (a4.late ? "a late answer: " : "its answer: ") + a4.status, bad: tone({ kind: "invocation.finished", how: ["input_required", "accepted"].includes(a4.outcome) ? a4.outcome : a4.status }) }
  ])].filter((x3) => x3.id > 0).sort((a4, b4) => a4.id - b4.id);
  return html`<h2 class="sub">The life of the intent <small><${State} of=${is.state} /> now</small></h2>
    <ol class="story">${steps.map((x3) => html`<li key=${x3.id + x3.says} class=${x3.id === shown2 ? "here" : ""}><a href=${here({ of: x3.id })}>#${x3.id}</a> <span class=${x3.bad ?? ""}>${spelled(x3.says)}</span>${x3.payload !== void 0 && x3.payload !== null && html`<div class="box"><${Value} of=${x3.payload} /></div>`}</li>`)}</ol>
    <details><summary>the params that it is about</summary><div class="box"><${Value} of=${is.params} /></div></details>`;
}

// shadow.js
var tables = [
  { of: "decisions_changed", name: "Decisions that would be others", sides: (r4) => ({ was: r4.was, is: r4.is + (r4.rules.length ? " by " + r4.rules.join(", ") : "") }) },
  { of: "intents_new", name: "Effects besides", sides: (r4) => ({ was: "", is: r4.decision }) },
  { of: "intents_gone", name: "Effects that would be gone", sides: (r4) => ({ was: r4.decision, is: "" }) },
  { of: "failed", name: "Steps that would fail", sides: (r4) => ({ was: "", is: r4.error }) },
  { of: "mended", name: "Steps that would fail no more", sides: (r4) => ({ was: r4.error, is: "" }) },
  { of: "events_new", name: "Events besides", sides: (r4) => ({ was: "", is: r4.data }) },
  { of: "events_gone", name: "Events that would be gone", sides: (r4) => ({ was: r4.data, is: "" }) },
  { of: "refused", name: "Inputs that it would not take", sides: (r4) => ({ was: "", is: r4.error }) },
  { of: "unknown", name: "Unknown beyond here", unknown: true, sides: (r4) => ({ was: "", is: r4.why }) }
];
var moneys = /cent|micro|amount|price|cost|total|sum|usd|eur|fee/i;
function money(params) {
  let most5 = 0;
  const look3 = (of, name) => {
    if (typeof of === "number" && moneys.test(name)) most5 = Math.max(most5, Math.abs(of));
    else if (of && typeof of === "object") for (const [k5, v5] of Object.entries(of)) look3(v5, Array.isArray(of) ? name : k5);
  };
  try {
    look3(JSON.parse(params), "");
  } catch {
  }
  return most5;
}
function Report({ of, proposal }) {
  const counts = Object.entries(of.counts).filter(([, n4]) => n4 > 0);
  const same = counts.length === 0 && !of.first_divergence;
  return html`
    ${same ? html`<p><b>Nothing would have been otherwise</b> in ${number(of.events)} events.</p>` : html`<div class="tiles">${counts.map(([name, n4]) => html`<div key=${name} class=${name === "unknown" ? "tile doubt" : "tile"}><b>${number(
    /** @type {number} */
    n4
  )}</b> ${name.replace(/_/g, " ")}</div>`)}</div>`}
    <p class="dim">Records ${number(of.from)} to ${number(of.to)}, ${number(of.events)} events. Cost: ${cost(of.cost_was)}${cost(of.cost_is) === cost(of.cost_was) ? ", and the same" : ", and would have been " + cost(of.cost_is)}.</p>
    ${tables.map((t5) => html`<${Table} key=${t5.of} table=${t5} rows=${of[t5.of]} all=${of.counts[t5.of]} proposal=${proposal} />`)}
    <${CellsChanged} rows=${of.cells_changed} all=${of.counts.cells_changed} />
    ${of.first_divergence && html`<h3>It parts at <a href=${at2(of.first_divergence, proposal)}>#${of.first_divergence.record}</a></h3>
      <${Pair} of=${{ was: of.first_divergence.recorded, is: of.first_divergence.computed }} />`}`;
}
var cost = (of) => Object.entries(of).filter(([, n4]) => n4 > 0).map(([unit, n4]) => number(n4) + " " + unit).join(", ") || "nothing";
var at2 = (row, proposal) => there("timeline", row.record ? { of: row.record, proposal } : { filter: row.cell, proposal });
function Table({ table, rows, all: all2, proposal }) {
  if (!all2) return null;
  const sorted = rows.map((r4) => ({ r: r4, money: money(r4.params ?? "") })).sort((a4, b4) => b4.money - a4.money);
  const paid = sorted.some((x3) => x3.money > 0);
  return html`<h3 class=${table.unknown ? "doubt" : ""}>${table.name} <small>${number(all2)}${all2 > rows.length ? ", of which the report lists " + number(rows.length) : ""}${paid ? ", most money first" : ""}</small></h3>
    <div class="scroll" tabindex="0" role="region" aria-label=${table.name}><table class=${table.unknown ? "unknown" : ""}>
      <thead><tr><th>where</th>${paid && html`<th class="n">amount</th>`}<th>was</th><th>would be</th><th>record</th></tr></thead>
      <tbody>${sorted.map(({ r: r4, money: n4 }, i4) => {
    const { was, is } = table.sides(r4);
    return html`<tr key=${i4}><td>${spelled(r4.cell ?? "")} <b>${spelled(r4.kind ?? r4.name ?? "")}</b> <code>${line(r4.params ?? "", 80)}</code></td>
          ${paid && html`<td class="n">${n4 ? number(n4) : ""}</td>`}<td>${line(was, 60)}</td><td class=${table.unknown ? "doubt" : ""}>${line(is, 60)}</td>
          <td><a href=${at2(r4, proposal)}>${r4.record ? "#" + r4.record : "its lane"}</a></td></tr>`;
  })}</tbody>
    </table></div>`;
}
function CellsChanged({ rows, all: all2 }) {
  if (!all2) return null;
  return html`<h3>Cells that would be others <small>${number(all2)}${all2 > rows.length ? ", of which the report lists " + number(rows.length) : ""}</small></h3>
    <ol class="story">${rows.map((c4) => html`<li key=${c4.cell}><a href=${there("cells", { of: c4.cell })}>${spelled(c4.cell)}</a> ${spelled(c4.what)}, ${c4.steps_was} → ${c4.steps_is} steps
      ${c4.unknown && html` <b class="doubt">unknown from here on: it waits for an answer that the history does not have</b>`}
      ${c4.state.map((s4) => html`<div key=${s4.path}><code>${line(s4.path || "all of it", 80)}</code> <${Pair} of=${s4} /></div>`)}</li>`)}</ol>`;
}
function Pair({ of }) {
  return html`<div class="pair"><div><small>was</small><pre class="block">${of.was ? spelled(of.was) : "nothing"}</pre></div>
    <div><small>would be</small><pre class="block">${of.is ? spelled(of.is) : "nothing"}</pre></div></div>`;
}
function Beside({ world, proposal, record: record2 }) {
  const { is, error } = useAnswer(pathOf(world, "proposals", proposal), true);
  if (!is?.report) return html`<${Trouble} of=${error} />`;
  const found = tables.flatMap((t5) => is.report[t5.of].filter((r4) => r4.record === record2).map((r4) => ({ name: t5.name, r: r4, pair: t5.sides(r4) })));
  const parts2 = is.report.first_divergence?.record === record2;
  return html`<div class="pad beside"><b>By <a href=${there("rules", { of: proposal })}>${spelled(proposal)}</a></b>
    ${found.length === 0 && !parts2 && html`<span> this would have been the same.</span>`}
    ${found.map((f4, i4) => html`<div key=${i4}>${f4.name}: ${spelled(f4.r.cell ?? "")} <b>${spelled(f4.r.kind ?? f4.r.name ?? "")}</b> <code>${line(f4.r.params ?? "", 120)}</code><${Pair} of=${f4.pair} /></div>`)}
    ${parts2 && html`<div>The history parts here<${Pair} of=${{ was: is.report.first_divergence.recorded, is: is.report.first_divergence.computed }} /></div>`}</div>`;
}

// rules.js
var Stage = ({ of }) => html`<span class=${"stage " + of}>${spelled(of)}</span>`;
function Rules({ world, status }) {
  const { is, error } = useAnswer(pathOf(world, "proposals") + "?all=true&limit=1000");
  const until2 = at() ? recordAt(columns.value.of) : Infinity;
  const all2 = (is?.proposals ?? []).filter((p5) => p5.record <= until2).reverse();
  const chosen = place.value.of.of || (all2[0]?.proposal ?? "");
  const items = all2.map((p5) => ({
    id: p5.proposal,
    href: here({ of: p5.proposal }),
    body: html`<b>${p5.proposal} <${Stage} of=${p5.stage} /></b><span>${spelled(p5.reason)} · ${spelled(p5.author)}${!p5.ended && ` · ${p5.approved} of ${p5.needed} signatures`}</span>`
  }));
  return html`<div class="two">
    <section class="side">
      <${Head} title="Rules" about=${status ? `in force: v${status.manifest.version} ${short(status.manifest.hash, 8)}` : ""} />
      <${Trouble} of=${error} />
      ${is && all2.length === 0 && html`<p class="pad dim">${at() ? "No change had been proposed." : "No change was ever proposed."}</p>`}
      <${List} label="Proposals" items=${items} chosen=${chosen} />
      <footer><${CommandNow} line="worldctl proposal list --all" /></footer>
    </section>
    <section class="main">${chosen && html`<${Proposal} key=${chosen} world=${world} id=${chosen} />`}</section>
  </div>`;
}
function Proposal({ world, id }) {
  const { is, error } = useAnswer(pathOf(world, "proposals", id));
  if (!is) return html`<${Trouble} of=${error} />`;
  return html`<${Head} title=${is.proposal} about=${html`<${Stage} of=${is.stage} /> to version ${is.version}`}><a href=${there("records", { of: is.record })}>#${is.record} in the journal</a><//>
    <div class="pad whole">
      <${Trouble} of=${error} />
      ${at() && html`<p class="dim">It stands here as it does now, not as of the moment that is looked at.</p>`}
      <h2>${spelled(is.reason) || html`<span class="dim">no reason was given</span>`}</h2>
      <dl class="facts">
        <${Fact} name="author">${spelled(is.author)}, ${is.signed_by ? html`signed with ${signer(is.signed_by)}` : "not signed"}<//>
        <${Fact} name="base"><code>${short(is.base)}</code> ${is.base_in_force ? "which is in force" : !is.ended && html`<b class="bad">which is not in force any more</b>`}<//>
        <${Fact} name="candidate"><code>${short(is.candidate)}</code>, version ${is.version}<//>
        ${is.ended && html`<${Fact} name=${is.stage}><a href=${there("records", { of: is.ended.record })}>#${is.ended.record}</a> by ${spelled(is.ended.by)}${is.ended.reason && ": " + spelled(is.ended.reason)}<//>`}
      </dl>
      <${Changes2} name="Gains rights, or may" of=${is.gains} kind="gains" />
      <${Changes2} name="Loses rights" of=${is.loses} kind="loses" />
      <${Changes2} name="Besides" of=${is.changes} kind="" />
      ${is.code && html`<h2 class="sub">How the code differs</h2><pre class="block" tabindex="0">${spelled(is.code)}</pre>`}
      <h2 class="sub">What it would have done</h2>
      ${is.report ? html`<${Report} of=${is.report} proposal=${is.proposal} />` : html`<p class="dim">${is.report_hash ? "The report was redacted." : "It was not shadowed yet."}</p><${Command} line=${"worldctl shadow " + is.proposal} />`}
      ${is.migration?.cells > 0 && html`<p>Applied now, new code takes over the states of ${number(is.migration.cells)} cells.</p>`}
      <${Signatures} of=${is} world=${world} />
      <${End} of=${is} world=${world} />
      <footer><${CommandNow} line=${"worldctl proposal show " + is.proposal} /></footer>
    </div>`;
}
var signer = (of) => (of.name ? spelled(of.name) + ", " : "") + of.fingerprint;
function Changes2({ name, of, kind: kind2 }) {
  if (of.length === 0) return null;
  return html`<h2 class="sub">${name}</h2><ul class="rights">${of.map((c4, i4) => html`<li key=${i4} class=${kind2}><b>${spelled(c4.name)}</b><pre class="block">${spelled(c4.text)}</pre></li>`)}</ul>`;
}
function Signatures({ of, world }) {
  return html`<h2 class="sub">Signatures <small>${of.approved}${of.needed > 0 && " of " + of.needed}</small></h2>
    <ul class="rights">${of.approvals.map((a4) => html`<li key=${a4.record} class=${a4.current ? "loses" : ""}>${signer(a4)}, <a href=${there("records", { of: a4.record })}>#${a4.record}</a>, says ${spelled(a4.actor)}${a4.reason && ": " + spelled(a4.reason)}
      ${!a4.current && html` <b class="warn">It is for another report, and does not count.</b>`}</li>`)}</ul>
    ${of.missing.length > 0 && html`<p>Missing: ${of.missing.map(spelled).join("; ")}.</p>`}
    ${of.statement && of.stage !== "approved" && !at() && html`<div class="form">
      <p>An approval is an Ed25519 signature over exactly this. Sign it where your key is; this page sees by itself when it is there.</p>
      <pre class="block" id="statement">${spelled(of.statement)}</pre>
      <${Command} line=${`worldctl approve ${of.proposal} --key ~/.ssh/id_ed25519`} />
      ${may("approve") && html`<${Paste} of=${of} world=${world} />`}
    </div>`}`;
}
function keyOf(text3) {
  if (/^[0-9a-f]{64}$/i.test(text3.trim())) return text3.trim().toLowerCase();
  const line2 = /^ssh-ed25519\s+([A-Za-z0-9+/=]{68})(\s|$)/.exec(text3.trim());
  return line2 ? Array.from(atob(line2[1]).slice(-32), (c4) => c4.charCodeAt(0).toString(16).padStart(2, "0")).join("") : "";
}
function Paste({ of, world }) {
  const [key, setKey] = useState("");
  const [signature, setSignature] = useState("");
  const [reason, setReason] = useState("");
  const [error, setError] = useState(
    /** @type {Error | null} */
    null
  );
  const ready = keyOf(key) !== "" && /^[A-Za-z0-9+/]{86}==$/.test(signature.trim());
  const send = async (e4) => {
    e4.preventDefault();
    if (!ready) return;
    await post(pathOf(world, "proposals", of.proposal, "approve"), { key: keyOf(key), signature: signature.trim(), reason }).then(() => setError(null), setError);
    grown.value++;
  };
  const field = (set) => (e4) => set(e4.target.value);
  return html`<details><summary>Paste a signature that was made elsewhere</summary><form onSubmit=${send}>
    <label>Public key, hex or a line of ssh<input spellcheck="false" autocomplete="off" value=${key} onInput=${field(setKey)} /></label>
    <label>Signature over these bytes, base64<input spellcheck="false" autocomplete="off" value=${signature} onInput=${field(setSignature)} /></label>
    <label>Reason (the journal keeps it)<input maxlength="4000" autocomplete="off" value=${reason} onInput=${field(setReason)} /></label>
    <${Trouble} of=${error} />
    <button class="full yes" disabled=${!ready}>Approve with this signature</button>
  </form></details>`;
}
var ends2 = [
  { name: "Apply", key: "x", verb: "apply", kind: "yes", scope: "admin", silent: true },
  { name: "Reject", key: "d", verb: "reject", kind: "no", needs: true }
];
function End({ of, world }) {
  const [form, setForm] = useState(
    /** @type {any} */
    null
  );
  if (of.ended && !form) return null;
  const open = ends2.filter((way) => way.verb !== "apply" || of.would_apply.ok);
  const meanwhile = form && (of.ended ? `it is ${of.stage} now` : form.about.report_hash !== of.report_hash ? "there is another report now" : "");
  return html`<h2 class="sub">Now</h2>
    <p>${of.would_apply.ok ? `It would be applied, and migrate ${number(of.would_apply.migrated)} cells.` : html`It would not be applied: ${spelled(of.would_apply.error).replace(/^\w+: /, "")}.`}</p>
    ${form ? html`<${Form} world=${world} way=${form.way} about=${of.proposal} meanwhile=${meanwhile} close=${() => setForm(null)}
        send=${(reason) => post(pathOf(world, "proposals", of.proposal, form.way.verb), form.way.verb === "apply" ? {} : { reason })}
        line=${(reason) => `worldctl ${form.way.verb} ${word(of.proposal)}` + (form.way.verb === "apply" ? "" : ` -m ${reason}`)} />` : html`<${Ways} of=${open} begin=${(way) => setForm({ way, about: of })} />`}`;
}

// timeline.js
var laneHeight = 24;
function Timeline({ world }) {
  const { of, version } = columns.value;
  const byTick = place.value.of.axis !== "order";
  const wanted2 = place.value.of.filter ?? "";
  const chosen = Number(place.value.of.of || 0);
  const [open, setOpen] = useState(() => /* @__PURE__ */ new Set(
    /** @type {string[]} */
    []
  ));
  const line2 = useMemo(() => axis(of, byTick), [of, version, byTick]);
  const focus = place.value.of.focus && chosen > 0 && chosen <= of.n ? chosen : 0;
  const only = useMemo(() => focus ? wayOf(of, focus - 1) : null, [of, version, focus]);
  const shown2 = useMemo(() => groups(of, wanted2, open, only), [of, version, wanted2, open, only]);
  const moment = at() ? recordAt(of) : 0;
  const [span, setSpan] = useState(
    /** @type {Span | null} */
    null
  );
  const now = span ?? { from: 0, to: Math.max(line2.width, 1) };
  const move = (to) => {
    if (!to) return setSpan(null);
    const width = Math.min(Math.max(to.to - to.from, 0.5), Math.max(line2.width, 1));
    const from = Math.max(0, Math.min(to.from, line2.width - width));
    return setSpan(width >= line2.width ? null : { from, to: from + width });
  };
  const middle = () => {
    const at3 = line2.at[chosen - 1] ?? -1;
    return at3 >= now.from && at3 <= now.to ? at3 : (now.from + now.to) / 2;
  };
  const zoom = (by, around = middle()) => move({ from: around - (around - now.from) * by, to: around + (now.to - around) * by });
  const pan = (by) => move({ from: now.from + (now.to - now.from) * by, to: now.to + (now.to - now.from) * by });
  A2(() => setSpan(null), [of, byTick]);
  A2(() => {
    const at3 = line2.at[chosen - 1];
    if (chosen > 0 && at3 !== void 0 && (at3 < now.from || at3 > now.to)) move({ from: at3 - (now.to - now.from) / 2, to: at3 + (now.to - now.from) / 2 });
  }, [chosen]);
  useKey("+", () => zoom(0.5));
  useKey("-", () => zoom(2));
  useKey("0", () => move(null));
  useKey("h", () => pan(-0.25));
  useKey("l", () => pan(0.25));
  useKey("f", () => amend({ focus: focus ? "" : "1" }), chosen > 0);
  const a4 = first(line2.at, of.n, now.from);
  const b4 = first(line2.at, of.n, now.to);
  return html`<${Head} title="Timeline" about=${number(b4 - a4) + " of " + number(of.n) + " records" + (moment > 0 && at() ? ", " + number(moment) + " of them by then" : "")}>
      <input class="filter" aria-label="Filter lanes" placeholder="filter lanes" value=${wanted2} onInput=${(e4) => amend({ filter: e4.target.value })} />
      <span class="choice"><a href=${here({ axis: "" })} aria-current=${byTick}>by tick</a><a href=${here({ axis: "order" })} aria-current=${!byTick}>by order</a></span>
      <button type="button" aria-pressed=${focus > 0} disabled=${chosen === 0} onClick=${() => amend({ focus: focus ? "" : "1" })}>one way <kbd>f</kbd></button>
      <button type="button" aria-label="zoom out" onClick=${() => zoom(2)}>−</button>
      <button type="button" aria-label="zoom in" onClick=${() => zoom(0.5)}>+</button>
      <button type="button" onClick=${() => move(null)}>all</button>
    <//>
    <div class="two wide">
      <section class="side">
        <${Minimap} of=${of} line=${line2} now=${now} move=${move} />
        <${Lanes} of=${of} line=${line2} now=${now} groups=${shown2} chosen=${chosen} moment=${moment} world=${world} zoom=${zoom} pan=${pan}
          toggle=${(g5) => setOpen((was) => {
    const is = new Set(was);
    if (!is.delete(g5)) is.add(g5);
    return is;
  })} open=${open} />
        <${InView} world=${world} of=${of} from=${a4} count=${b4 - a4} chosen=${chosen} />
        <footer><${Command} line=${"worldctl tail" + (at() ? " --to " + word(at()) : "")} /></footer>
      </section>
      <section class="main">${chosen > 0 && place.value.of.proposal && html`<${Beside} world=${world} proposal=${place.value.of.proposal} record=${chosen} />`}
        ${chosen > 0 ? html`<${Record} key=${chosen} world=${world} id=${chosen} />` : html`<p class="pad dim">Choose a record: click it, or walk the list below the lanes with j and k.</p>`}</section>
    </div>`;
}
function paint(canvas, height, act) {
  const sharp = devicePixelRatio || 1;
  const width = canvas.clientWidth;
  canvas.width = Math.round(width * sharp);
  canvas.height = Math.round(height * sharp);
  const draw = (
    /** @type {CanvasRenderingContext2D} */
    canvas.getContext("2d")
  );
  draw.scale(sharp, sharp);
  const style = getComputedStyle(canvas);
  const colors = {};
  act(draw, width, (name) => colors[name] ??= style.getPropertyValue("--" + name).trim() || "#888");
}
function useWidth() {
  const [width, setWidth] = useState(innerWidth);
  A2(() => {
    const changed2 = () => setWidth(innerWidth);
    addEventListener("resize", changed2);
    return () => removeEventListener("resize", changed2);
  }, []);
  return width;
}
function Minimap({ of, line: line2, now, move }) {
  const canvas = T2(
    /** @type {HTMLCanvasElement | null} */
    null
  );
  const width = useWidth();
  const height = 36;
  const counted2 = T2(
    /** @type {{line: any, bins: Float64Array, bad: Float64Array} | null} */
    null
  );
  A2(() => {
    if (!canvas.current) return;
    paint(canvas.current, height, (draw, wide2, color) => {
      const n4 = Math.ceil(wide2 / 3);
      if (counted2.current?.line !== line2 || counted2.current.bins.length !== n4) counted2.current = { line: line2, ...count2(of, line2, n4) };
      const { bins, bad } = (
        /** @type {{bins: Float64Array, bad: Float64Array}} */
        counted2.current
      );
      const most5 = Math.log2(1 + bins.reduce((a4, b4) => Math.max(a4, b4), 1));
      bins.forEach((n5, i4) => {
        if (!n5) return;
        const tall = Math.log2(1 + n5) / most5 * (height - 6);
        draw.fillStyle = color("dim");
        draw.fillRect(i4 * 3, height - tall, 2, tall);
        if (bad[i4]) {
          draw.fillStyle = color("bad");
          draw.fillRect(i4 * 3, 0, 2, 3);
        }
      });
      draw.strokeStyle = color("link");
      draw.strokeRect(now.from / line2.width * wide2 + 0.5, 0.5, Math.max(2, (now.to - now.from) / line2.width * wide2 - 1), height - 1);
    });
  }, [of, line2, now.from, now.to, width]);
  const lead2 = (e4) => {
    const at3 = e4.offsetX / /** @type {HTMLElement} */
    e4.currentTarget.clientWidth * line2.width;
    move({ from: at3 - (now.to - now.from) / 2, to: at3 + (now.to - now.from) / 2 });
  };
  return html`<canvas class="minimap" role="img" aria-label="all records" ref=${canvas} onClick=${lead2}></canvas>`;
}
function count2(of, line2, n4) {
  const bins = new Float64Array(n4);
  const bad = new Float64Array(n4);
  const troubles = of.whats.map((w5) => look2(w5).trouble ? 1 : 0);
  const scale = n4 / Math.max(line2.width, 1);
  for (let i4 = 0; i4 < of.n; i4++) {
    const bin = Math.min(n4 - 1, Math.floor(line2.at[i4] * scale));
    bins[bin]++;
    bad[bin] += troubles[of.what[i4]];
  }
  return { bins, bad };
}
function Lanes({ of, line: line2, now, groups: all2, chosen, moment, world, zoom, pan, toggle, open }) {
  const canvas = T2(
    /** @type {HTMLCanvasElement | null} */
    null
  );
  const width = useWidth();
  const rows = [];
  let height = 18;
  const labels = all2.flatMap((g5) => {
    const top = height;
    height += laneHeight;
    const lanes = g5.lanes.map((lane) => {
      rows.push({ lane, y: height + laneHeight / 2 });
      height += laneHeight;
      return html`<a key=${lane.cell} class="lane" href=${there("cells", { of: of.cells[lane.cell] })}><span>${cut(lane.name, 40)}</span><small>${number(lane.records.length)}</small></a>`;
    });
    return [html`<button key=${"g" + g5.name + top} type="button" class="group" onClick=${() => toggle(g5.name)} aria-expanded=${open.has(g5.name)}><b>${spelled(g5.name)}</b><small>${g5.all > g5.lanes.length ? g5.lanes.length + " of " + number(g5.all) : g5.all + (g5.all === 1 ? " cell" : " cells")}</small></button>`, ...lanes];
  });
  A2(() => {
    if (canvas.current) paint(canvas.current, height, (draw, wide2, color) => drawLanes(draw, wide2, height, color, of, line2, now, rows, chosen, moment));
  }, [of, line2, now.from, now.to, all2, chosen, moment, width, height, isReal()]);
  A2(() => {
    const on = canvas.current;
    const turned = (e4) => {
      if (!e4.ctrlKey && Math.abs(e4.deltaY) > Math.abs(e4.deltaX) && !e4.shiftKey) return;
      e4.preventDefault();
      if (e4.ctrlKey) zoom(e4.deltaY > 0 ? 1.25 : 0.8, now.from + e4.offsetX / (on?.clientWidth ?? 1) * (now.to - now.from));
      else pan((e4.deltaX || e4.deltaY) / 1e3);
    };
    on?.addEventListener("wheel", turned, { passive: false });
    return () => on?.removeEventListener("wheel", turned);
  });
  const choose = (e4) => {
    const row = rows.reduce((a4, b4) => Math.abs(b4.y - e4.offsetY) < Math.abs(a4.y - e4.offsetY) ? b4 : a4, rows[0]);
    if (!row) return;
    const at3 = now.from + e4.offsetX / /** @type {HTMLElement} */
    e4.currentTarget.clientWidth * (now.to - now.from);
    const near = nearest(row.lane.records, line2.at, at3);
    if (near >= 0) go(world, "timeline", { ...place.value.of, of: near + 1 });
  };
  return html`<div class="lanes"><div class="labels">${labels}</div><canvas role="img" aria-label=${`lanes of ${rows.length} cells`} ref=${canvas} height=${height} onClick=${choose}></canvas></div>`;
}
function nearest(records2, at3, to) {
  let low = 0;
  for (let high2 = records2.length; low < high2; ) {
    const mid = low + high2 >> 1;
    if (at3[records2[mid]] < to) low = mid + 1;
    else high2 = mid;
  }
  const [a4, b4] = [records2[low - 1], records2[low]];
  if (a4 === void 0) return b4 ?? -1;
  return b4 === void 0 || to - at3[a4] < at3[b4] - to ? a4 : b4;
}
function drawLanes(draw, wide2, height, color, of, line2, now, rows, chosen, moment) {
  const scale = wide2 / (now.to - now.from);
  const x3 = (i4) => (line2.at[i4] - now.from) * scale;
  const looks2 = of.whats.map(look2);
  if (moment > 0 && moment <= of.n) {
    draw.fillStyle = color("box");
    draw.fillRect(x3(moment - 1) + 4, 0, wide2, height);
    draw.fillStyle = color("link");
    draw.fillRect(x3(moment - 1) + 3, 0, 1, height);
  }
  draw.font = "11px system-ui, sans-serif";
  const apart = isReal() ? 150 : 60;
  let last = -apart;
  for (const { tick, from } of line2.ticks) {
    const px = (from - now.from) * scale;
    if (px < 0 || px > wide2 || px - last < apart) continue;
    last = px;
    draw.fillStyle = color("line");
    draw.fillRect(px, 0, 1, height);
    draw.fillStyle = color("dim");
    draw.fillText(when(tick), px + 3, 12);
  }
  const lanes = new Map(rows.map(({ lane, y: y5 }) => [lane.cell, y5]));
  for (const { lane, y: y5 } of rows) {
    draw.fillStyle = color("line");
    draw.fillRect(0, y5 + laneHeight / 2, wide2, 1);
    const records2 = lane.records;
    let i4 = firstIn(records2, line2.at, now.from);
    let pixel = -1;
    for (; i4 < records2.length && line2.at[records2[i4]] <= now.to; i4++) {
      const r4 = records2[i4];
      const px = x3(r4);
      const is = looks2[of.what[r4]];
      if (Math.floor(px) === pixel && !is.trouble) continue;
      pixel = Math.floor(px);
      const cause = of.cause[r4] - 1;
      if (is.shape === "answer" || is.shape === "bad" || is.shape === "doubt") {
        const asked2 = cause >= 0 ? of.cause[cause] - 1 : -1;
        if (asked2 >= 0 && of.cell[asked2] === lane.cell) {
          draw.fillStyle = color(is.color);
          draw.fillRect(x3(asked2), y5 - 1, px - x3(asked2), 2);
        }
      }
      shape(draw, is.shape, px, y5, color(is.color));
    }
  }
  if (chosen < 1 || chosen > of.n) return;
  ways3(draw, color("link"), of, x3, lanes, chosen - 1);
}
function firstIn(records2, at3, from) {
  let low = 0;
  for (let high2 = records2.length; low < high2; ) {
    const mid = low + high2 >> 1;
    if (at3[records2[mid]] < from) low = mid + 1;
    else high2 = mid;
  }
  return low;
}
function ways3(draw, color, of, x3, lanes, chosen) {
  draw.strokeStyle = color;
  draw.lineWidth = 1.5;
  const y5 = (i4) => lanes.get(of.cell[i4] >= 0 ? of.cell[i4] : of.several.get(i4)?.[0]);
  const link = (from, to) => {
    const [ya, yb] = [y5(from), y5(to)];
    if (ya === void 0 || yb === void 0) return;
    const [xa, xb] = [x3(from), x3(to)];
    draw.beginPath();
    draw.moveTo(xa, ya);
    draw.bezierCurveTo(xa + (xb - xa) / 2, ya - (ya === yb ? 9 : 0), xa + (xb - xa) / 2, yb - (ya === yb ? 9 : 0), xb, yb);
    draw.stroke();
  };
  for (let i4 = chosen, n4 = 0; of.cause[i4] > 0 && n4 < 200; n4++) {
    link(of.cause[i4] - 1, i4);
    i4 = of.cause[i4] - 1;
  }
  for (let i4 = chosen + 1, n4 = 0; i4 < of.n && n4 < 200 && i4 < chosen + 1e5; i4++) {
    if (of.cause[i4] - 1 !== chosen) continue;
    link(chosen, i4);
    n4++;
  }
  const at3 = y5(chosen);
  if (at3 === void 0) return;
  draw.beginPath();
  draw.arc(x3(chosen), at3, 8, 0, 2 * Math.PI);
  draw.stroke();
}
function shape(draw, is, x3, y5, color) {
  draw.fillStyle = draw.strokeStyle = color;
  draw.lineWidth = 1.3;
  draw.beginPath();
  switch (is) {
    case "input":
    case "event":
      draw.moveTo(x3 - 3, y5 - 4);
      draw.lineTo(x3 + 4, y5);
      draw.lineTo(x3 - 3, y5 + 4);
      draw.closePath();
      if (is === "input") draw.fill();
      else draw.stroke();
      return;
    case "asks":
    case "waits":
      draw.moveTo(x3, y5 - 4);
      draw.lineTo(x3 + 4, y5);
      draw.lineTo(x3, y5 + 4);
      draw.lineTo(x3 - 4, y5);
      draw.closePath();
      if (is === "waits") draw.fill();
      else draw.stroke();
      return;
    case "answer":
      draw.fillRect(x3 - 3, y5 - 3, 6, 6);
      return;
    case "bad":
    case "denied":
    case "doubt":
      draw.moveTo(x3 - 3, y5 - 3);
      draw.lineTo(x3 + 3, y5 + 3);
      draw.moveTo(x3 + 3, y5 - 3);
      draw.lineTo(x3 - 3, y5 + 3);
      draw.stroke();
      return;
    case "permit":
      draw.fillRect(x3 - 1, y5 - 1, 2, 2);
      return;
  }
  draw.arc(x3, y5, is === "step" ? 2.5 : 3, 0, 2 * Math.PI);
  if (is === "step") draw.fill();
  else draw.stroke();
}
var told = 40;
function InView({ world, of, from, count: count3, chosen }) {
  const start = chosen > from && chosen <= from + count3 ? Math.max(from, chosen - told / 2) : from;
  const [asked2, setAsked] = useState(start);
  A2(() => {
    const later = setTimeout(() => setAsked(start), 150);
    return () => clearTimeout(later);
  }, [start]);
  const { is } = useAnswer(pathOf(world, "records") + `?raw=false&after=${asked2}&limit=${told}`);
  const last = T2(
    /** @type {any[]} */
    []
  );
  const records2 = last.current = is?.records ?? last.current;
  const step2 = (by) => {
    const at3 = Number(where().of.of || 0);
    lead(here({ of: at3 > 0 ? Math.max(1, Math.min(of.n, at3 + by)) : from + 1 }));
  };
  useKey("j", () => step2(1));
  useKey("k", () => step2(-1));
  return html`<h2 class="told">Records in view <small>${number(count3)}, from #${start + 1}</small></h2>
    <nav class="list" aria-label="Records in view">${records2.map((r4) => html`<a key=${r4.id} href=${here({ of: r4.id })} aria-current=${r4.id === chosen}>
      <span class="row"><span class="n">#${r4.id}</span><${Tick} of=${r4.time} /><span><${Mark} of=${r4} /> ${spelled(r4.kind)}</span><span class=${"say " + tone(r4)}>${sentence(r4)}</span></span></a>`)}</nav>`;
}

// worlds.js
var told2 = 5;
var words = { approve: "awaiting approval", repeat: "possible repeat", answer: "asked", confirm: "to confirm", resolve: "in doubt", resume: "cell halted" };
function owedBy(inbox) {
  const by = /* @__PURE__ */ new Map();
  for (const o4 of inbox?.owed ?? []) {
    const of = by.get(o4.world) ?? /* @__PURE__ */ new Map();
    of.set(o4.wants, (of.get(o4.wants) ?? 0) + 1);
    by.set(o4.world, of);
  }
  return by;
}
function useStands(worlds) {
  const [stands, setStands] = useState(
    /** @type {Record<string, any>} */
    {}
  );
  const asked2 = T2(
    /** @type {Map<string, string>} */
    /* @__PURE__ */ new Map()
  );
  const end = T2(new AbortController());
  A2(() => () => end.current.abort(), []);
  const now = worlds.map((w5) => w5.id + " " + w5.head.id + " " + w5.idle);
  A2(() => {
    worlds.forEach((w5, i4) => {
      if (!w5.open || asked2.current.get(w5.id) === now[i4]) return;
      asked2.current.set(w5.id, now[i4]);
      get(pathOf(w5.id), end.current.signal).then((is) => setStands((was) => ({ ...was, [w5.id]: is })), () => asked2.current.delete(w5.id));
    });
  }, [now.join()]);
  return stands;
}
function Worlds() {
  const all2 = useAnswer("/api/worlds");
  const inbox = useAnswer("/api/inbox?limit=1000");
  const stands = useStands(all2.is?.worlds ?? []);
  const by = owedBy(inbox.is);
  const owed = (w5) => [...by.get(w5.id)?.values() ?? []].reduce((a4, b4) => a4 + b4, 0);
  const rows = (all2.is?.worlds ?? []).map((w5) => ({ ...stands[w5.id], ...w5 }));
  rows.sort((a4, b4) => owed(b4) - owed(a4));
  return html`<${Head} title="Worlds" about=${number(rows.length) + (all2.is?.next ? " or more" : "")}>${inbox.is?.owed.length > 0 && html`<a href=${address("", "inbox")}>${number(inbox.is.owed.length)}${inbox.is.next && " or more"} in the inbox of all</a>`}<//>
    <${Trouble} of=${all2.error ?? inbox.error} />
    ${all2.is?.away && html`<p class="bad">${number(all2.is.away)} of the stores ${all2.is.away === 1 ? "does" : "do"} not answer: worlds there are not in this list, and wait</p>`}
    <div class="scroll" tabindex="0" role="region" aria-label="Table"><table>
      <thead><tr><th>world</th><th>stands</th><th class="n">records</th><th class="n">tick or time</th><th class="n">cells</th><th>effects</th><th>needs a person</th><th>rules</th><th>chain root</th></tr></thead>
      <tbody>${rows.map((w5) => html`<tr key=${w5.id}>
        <td><a href=${address(w5.id, "inbox")}>${spelled(w5.world ?? w5.name)}</a> <small>${short(w5.id, 8)}</small></td>
        <td>${w5.anchor && !w5.anchor.ok ? html`<span class="bad">✕ its anchor differs</span>` : w5.idle ? html`<span class="dim">${w5.open ? "idle" : "rests"}</span>` : html`<span class="good">has work</span>`}</td>
        <td class="n">${number(w5.head.id)}</td><td class="n">${w5.intents && (w5.now === void 0 ? number(w5.time) : when(w5.time, w5.id))}</td><td class="n">${w5.intents && number(w5.cells)}</td>
        <td>${w5.intents && html`<${Effects2} of=${w5.intents} />`}</td>
        <td>${owed(w5) ? html`<a href=${address(w5.id, "inbox")}>${Object.entries(words).filter(([wants]) => by.get(w5.id)?.get(wants)).map(([wants, name]) => by.get(w5.id)?.get(wants) + " " + name).join(", ")}</a>` : html`<span class="dim">nothing</span>`}</td>
        <td>${w5.manifest && html`v${w5.manifest.version} <small>${short(w5.manifest.hash, 8)}</small>`}</td>
        <td><code>${short(w5.head.root ?? "")}</code></td>
      </tr>`)}</tbody>
    </table></div>
    <footer>${rows.slice(0, told2).filter((w5, i4) => i4 === 0 || dirOf(w5.id)).map((w5) => html`<${Command} key=${w5.id} world=${w5.id} line="worldctl status" />`)}</footer>`;
}
var order = ["committed", "in_flight", "open", "awaiting_approval", "awaiting_answer", "awaiting_confirmation", "in_doubt", "failed", "denied", "cancelled"];
function Effects2({ of }) {
  const some2 = order.map((state) => (
    /** @type {[string, number]} */
    [state, of[state] ?? 0]
  )).filter(([, n4]) => n4 > 0);
  if (some2.length === 0) return html`<span class="dim">none</span>`;
  const text3 = some2.map(([state, n4]) => n4 + " " + state.replace("_", " ")).join(", ");
  return html`<span class="bar" role="img" aria-label=${text3} title=${text3}>${some2.map(([state, n4]) => html`<i class=${state} style=${{ flexGrow: n4 }}></i>`)}</span>`;
}

// app.js
var views = [
  { id: "timeline", name: "Timeline", key: "t", of: Timeline },
  { id: "conversations", name: "Conversations", key: "s", of: Conversations },
  { id: "inbox", name: "Inbox", key: "i", of: Inbox },
  { id: "records", name: "Journal", key: "j", of: Records },
  { id: "cells", name: "Cells", key: "c", of: Cells },
  { id: "rules", name: "Rules", key: "r", of: Rules },
  { id: "history", name: "History", key: "h", of: History },
  ...copy ? [] : [{ id: "compare", name: "Compare", key: "d", of: Compare }],
  // which a server computes
  { id: "meters", name: "Meters", key: "m", of: Meters },
  { id: "proof", name: "Proof", key: "p", of: Proof }
];
var themes = ["system", "light", "dark"];
function wear(theme) {
  document.documentElement.dataset.theme = theme;
  try {
    localStorage.setItem("worldkernel.theme", theme);
  } catch {
  }
}
function App() {
  const { world, view } = place.value;
  if (!session.value) return html`<${Door} />`;
  if (!may("read")) return html`<main class="door"><p>You are here as <b>${spelled(session.value.name)}</b>, with a token for ${session.value.scopes.map(spelled).join(", ")}: it cannot read, so there is nothing to show.</p><button type="button" onClick=${leave}>leave</button></main>`;
  return html`<${Page} key=${world} world=${world} view=${view} />`;
}
function Page({ world, view }) {
  const worlds = useAnswer("/api/worlds", Boolean(world));
  const status = useAnswer(world ? pathOf(world) : null);
  const [help, setHelp] = useState(false);
  A2(() => world ? watch(world) : watchAll(), [world]);
  useKeys(() => setHelp((was) => !was));
  const shown2 = views.find((v5) => v5.id === view);
  const inbox = useAnswer(world ? "/api/inbox?limit=1000" : null);
  const owed = (inbox.is?.owed ?? []).filter((o4) => o4.world === world).length;
  A2(() => {
    document.title = (owed ? `(${owed}) ` : "") + (status.is ? spelled(status.is.world) + " · " : "") + "worldkernel";
  });
  return html`<a class="skip" href="#main" onClick=${(e4) => {
    e4.preventDefault();
    document.getElementById("main")?.focus();
  }}>to the content</a>
    <aside>
      <a class="brand" href=${address("", "")}><img src="mark.svg" alt="" width="16" height="16" /> worldkernel</a>
      <select aria-label="World" value=${world} onChange=${(e4) => go(e4.target.value, view === "worlds" ? "inbox" : view)}>
        <option value="">all worlds</option>
        ${(worlds.is?.worlds ?? []).map((w5) => html`<option key=${w5.id} value=${w5.id}>${spelled(w5.name)} · ${short(w5.id, 6)}</option>`)}
      </select>
      <${Find} world=${world} />
      <nav aria-label="Views">
        ${world && views.map((v5) => html`<a key=${v5.id} href=${there(v5.id)} aria-current=${v5.id === view ? "page" : void 0}>${v5.name}${v5.id === "inbox" && owed > 0 && html`<span class="count">${owed}</span>`}</a>`)}
        <a href=${address("", "")} aria-current=${world || view === "inbox" ? void 0 : "page"}>All worlds</a>
        ${!world && html`<a href=${address("", "inbox")} aria-current=${view === "inbox" ? "page" : void 0}>Inbox</a>`}
      </nav>
      <div class="foot">
        ${copy ? html`<${Copied} />` : html`<span class=${following.value ? "lamp on" : "lamp"} role="status">${following.value ? "following" : "not following"}</span>`}
        <button type="button" onClick=${() => wear(themes[(themes.indexOf(document.documentElement.dataset.theme ?? "system") + 1) % themes.length])}>colors</button>
        <button type="button" onClick=${() => setHelp(!help)}>keys <kbd>?</kbd></button>
        ${session.value?.name && html`<span class="dim">as ${spelled(session.value.name)}</span>`}
        ${!copy && html`<button type="button" onClick=${leave}>leave</button>`}
      </div>
    </aside>
    <main id="main" tabindex="-1">${absent(status.error) ? html`<${Nowhere} />` : html`${world && html`<${Moment} />`}${shown2 && (world || view === "inbox") ? html`<${shown2.of} world=${world} status=${status.is} />` : world || view !== "worlds" ? html`<${Nowhere} view=${view} />` : html`<${Worlds} />`}`}</main>
    ${help && html`<${Help} close=${() => setHelp(false)} />`}`;
}
var absent = (error) => error instanceof Problem && (error.status === 403 || error.status === 404);
function Nowhere({ view }) {
  return html`<${Head} title=${view === void 0 ? "No such world" : "No such view"} />
    <p class="pad" role="alert">${view === void 0 ? "there is no such world here, or not for this token" : "there is no view named " + line(view, 60)}. <a href=${address("", "")}>All worlds</a></p>`;
}
function Copied() {
  if (!copy) return null;
  return html`<p class="copied" role="note"><b>A copy</b>, made ${spelled(copy.made)}: ${copy.verified ? "it was verified" : html`<span class="bad">it did not hold</span>`} when it was made, by ${spelled(copy.by)}, up to #${copy.records}. It can have been changed since.
    ${copy.whole < copy.records && ` A payload was redacted: cells are shown up to #${copy.whole}.`} A bundle of the world lets you verify it yourself.</p>`;
}
var after = -Infinity;
function useKeys(help) {
  F2(() => {
    const pressed = (e4) => {
      if (typing(e4) || e4.ctrlKey || e4.metaKey || e4.altKey) return;
      const soon = e4.timeStamp - after < 1500;
      after = e4.key === "g" ? e4.timeStamp : -Infinity;
      const to = soon && views.find((v5) => v5.key === e4.key);
      const { world, of } = where();
      if (to && world) go(world, to.id, { at: of.at });
      else if (soon && e4.key === "w") go("", "");
      else if (soon && e4.key === "i") go("", "inbox");
      else if (e4.key === "?") help();
      else if (e4.key === "/") document.getElementById("find")?.focus();
      else return;
      e4.preventDefault();
      e4.stopImmediatePropagation();
    };
    addEventListener("keydown", pressed, true);
    return () => removeEventListener("keydown", pressed, true);
  }, []);
}
function Help({ close }) {
  const box = T2(
    /** @type {HTMLDialogElement | null} */
    null
  );
  F2(() => box.current?.showModal(), []);
  return html`<dialog ref=${box} onClose=${close} aria-label="Keys">
    <h2>Keys</h2>
    <dl class="facts">
      ${views.map((v5) => html`<div class="fact" key=${v5.id}><dt><kbd>g</kbd> <kbd>${v5.key}</kbd></dt><dd>${v5.name}</dd></div>`)}
      <div class="fact"><dt><kbd>g</kbd> <kbd>w</kbd></dt><dd>All worlds</dd></div>
      <div class="fact"><dt><kbd>j</kbd> <kbd>k</kbd></dt><dd>down and up a list</dd></div>
      <div class="fact"><dt><kbd>m</kbd></dt><dd>the world as of the record that is chosen</dd></div>
      <div class="fact"><dt><kbd>[</kbd> <kbd>]</kbd> <kbd>.</kbd> <kbd>p</kbd></dt><dd>a record earlier, later, now, and play</dd></div>
      <div class="fact"><dt><kbd>f</kbd></dt><dd>in the timeline: one way only, from its input to its end</dd></div>
      <div class="fact"><dt><kbd>a</kbd> <kbd>d</kbd></dt><dd>approve, deny</dd></div>
      <div class="fact"><dt><kbd>y</kbd> <kbd>n</kbd></dt><dd>it happened, it did not</dd></div>
      <div class="fact"><dt><kbd>/</kbd></dt><dd>find: #16, t7, desk/B-2, a key</dd></div>
    </dl>
    <form method="dialog"><button>close <kbd>esc</kbd></button></form>
  </dialog>`;
}
function Door() {
  const [secret, setSecret] = useState("");
  const [error, setError] = useState("");
  const knock = async (e4) => {
    e4.preventDefault();
    try {
      await enter(secret.trim());
    } catch (err) {
      setError(
        /** @type {Error} */
        err.message
      );
    }
  };
  return html`<main class="door"><form onSubmit=${knock}>
    <h1><img src="mark.svg" alt="" width="24" height="24" /> worldkernel</h1>
    <p>worldctl ui leads a browser here with a code; worldctl serve prints a token, and worldctl token new makes one.</p>
    <label>Code or token<input type="password" autocomplete="off" value=${secret} onInput=${(e4) => setSecret(e4.target.value)} autofocus /></label>
    ${(error || ousted.value) && html`<p class="trouble" role="alert">${spelled(error || "your token is not taken any more: its time is over, or somebody has taken it back")}</p>`}
    <button class="full yes">Enter</button>
  </form></main>`;
}
try {
  wear(localStorage.getItem("worldkernel.theme") ?? "system");
} catch {
  wear("system");
}
var app = (
  /** @type {HTMLElement} */
  document.getElementById("app")
);
var trouble = "";
try {
  await begin();
  if (copy && location.hash === "") replace(address((await get("/api/worlds")).worlds[0].id, "timeline"));
} catch (err) {
  trouble = /** @type {Error} */
  err.message;
}
Q(html`${trouble && html`<p class="trouble pad" role="alert">${spelled(trouble)}</p>`}<${App} />`, app);
export {
  columns,
  get,
  pathOf
};
