// The wall clock of deadlines and due times, under corrections of the system's time.

import { describe, expect, it } from 'vitest';
import { createSteadyClock } from '../src/steady-clock.ts';
import { createFakeClock } from './helpers/fake-clock.ts';

const hour = 3_600_000;

function clocks() {
  const system = createFakeClock();
  const steady = createSteadyClock(system);
  let setBack = 0;
  steady.onSetBack(() => setBack++);
  return { system, steady, setBacks: () => setBack };
}

describe('a steady clock', () => {
  it('follows small corrections at once', () => {
    const { system, steady } = clocks();
    system.jump(-30_000);
    expect(steady.now()).toBe(system.now());
    system.jump(50_000);
    expect(steady.now()).toBe(system.now());
  });

  it('goes on as before while a large jump is new, and forgets one that is taken back', async () => {
    const { system, steady, setBacks } = clocks();
    const before = steady.now();
    system.jump(7 * hour);
    expect(steady.now()).toBe(before);
    await system.advance(59_000);
    expect(steady.now()).toBe(before + 59_000);
    system.jump(-7 * hour);
    await system.advance(120_000);
    expect(steady.now()).toBe(before + 179_000);
    expect(steady.now()).toBe(system.now());
    expect(setBacks()).toBe(0);
  });

  it.each([
    ['ahead', 7 * hour, 0],
    ['back', -7 * hour, 1],
  ])('believes a jump %s that lasts for a minute', async (_way, jump, told) => {
    const { system, steady, setBacks } = clocks();
    system.jump(jump);
    steady.now();
    await system.advance(60_000);
    expect(steady.now()).toBe(system.now());
    expect(setBacks()).toBe(told);
  });

  it('starts its doubt anew when the clock jumps again', async () => {
    const { system, steady } = clocks();
    const before = steady.now();
    system.jump(7 * hour);
    steady.now();
    await system.advance(40_000);
    system.jump(7 * hour);
    steady.now();
    await system.advance(40_000);
    expect(steady.now()).toBe(before + 80_000);
  });
});
