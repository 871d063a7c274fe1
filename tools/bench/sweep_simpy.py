# Boltzmann's wealth in SimPy, 2 or later: a process for each agent, which wakes each tick.
import json, random, sys, time


def act(coins, i, rng):
    if coins[i] > 0:
        coins[i] -= 1
        coins[rng.randrange(len(coins))] += 1


def simpy2(agents, ticks, coins, rng):
    import SimPy
    from SimPy.Simulation import Process, Simulation, hold

    class Agent(Process):
        def live(self, i):
            while True:
                act(coins, i, rng)
                yield hold, self, 1

    sim = Simulation()
    sim.initialize()
    for i in range(agents):
        agent = Agent(sim=sim)
        sim.activate(agent, agent.live(i))
    return SimPy.__version__, lambda: sim.simulate(until=ticks - 0.5)


def simpy3(agents, ticks, coins, rng):
    import simpy

    def live(i):
        while True:
            act(coins, i, rng)
            yield env.timeout(1)

    env = simpy.Environment()
    for i in range(agents):
        env.process(live(i))
    return simpy.__version__, lambda: env.run(until=ticks - 0.5)


agents, ticks = int(sys.argv[1]), int(sys.argv[2])
model = agents, ticks, [1] * agents, random.Random(1)
try:
    version, run = simpy3(*model)
except ImportError:
    version, run = simpy2(*model)
start = time.process_time()
run()
print(json.dumps({"version": version.split()[0], "seconds": time.process_time() - start}))
