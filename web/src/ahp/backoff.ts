/** When to dial again after a lost connection: 0.5 s, doubling to 15 s, each between half and all of it. */

export const FIRST = 500;
export const LONGEST = 15_000;

/** Milliseconds before attempt number `attempt` (from 1), for a `chance` in [0, 1). */
export function backoff(attempt: number, chance: number): number {
  const bound = Math.min(LONGEST, FIRST * 2 ** Math.min(attempt - 1, 10));
  return Math.round(bound * (0.5 + chance / 2));
}
