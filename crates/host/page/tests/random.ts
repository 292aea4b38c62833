// Random values from a seed, so that a failing case can be run again.

export class Random {
  private state: number

  constructor (readonly seed: number) {
    this.state = seed >>> 0 || 1
  }

  /** A whole number below the limit. */
  below (limit: number): number {
    this.state = (this.state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(this.state ^ (this.state >>> 15), this.state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) % limit
  }

  chance (percent: number): boolean {
    return this.below(100) < percent
  }

  pick<T> (values: readonly T[]): T {
    return values[this.below(values.length)]!
  }
}
