// The log's lines about an overload: when it begins, every ten seconds while it lasts, and when it has ended. Times are those of
// performance.now, in ms.
import { performance } from 'node:perf_hooks';
import type { FailureCode } from '../../shared/failure-codes.ts';
import type { Log, LogFields } from '../../shared/process/log.ts';

/** How often a line is logged while an overload lasts. If nothing is rejected for this time, the overload has ended. */
const logMs = 10_000;
const checkMs = 1_000;

/** How many requests were rejected because too many wait for a connection. */
class Rejections {
  queueFull = 0;
  waitedTooLong = 0;

  count(code: 'QUEUE_FULL' | 'WAITED_TOO_LONG'): void {
    if (code === 'QUEUE_FULL') this.queueFull += 1;
    else this.waitedTooLong += 1;
  }
}

/** An overload that has not ended. */
type Lasting = {
  readonly since: number;
  readonly all: Rejections;
  lately: Rejections;
  lastAt: number;
  loggedAt: number;
};

/** The overloads of one section, as one worker sees them. The owner must call `end`. */
export class Overload {
  readonly #log: Log;
  readonly #describeLoad: () => LogFields;
  #lasting: Lasting | null = null;
  #timer: NodeJS.Timeout | undefined;

  /** @param describeLoad the further fields of each line */
  constructor(log: Log, describeLoad: () => LogFields) {
    this.#log = log;
    this.#describeLoad = describeLoad;
  }

  /** To be called with the failure of each finished request. @param code null: it succeeded, or MySQL rejected a statement */
  observe(code: FailureCode | null, now: number): void {
    if (code !== 'QUEUE_FULL' && code !== 'WAITED_TOO_LONG') return;
    const lasting = this.#lasting ?? this.#begin(code, now);
    lasting.all.count(code);
    lasting.lately.count(code);
    lasting.lastAt = now;
  }

  /** Logs the line that is due. */
  check(now: number): void {
    const lasting = this.#lasting;
    if (lasting === null) return;
    if (now - lasting.lastAt >= logMs) {
      this.end();
    } else if (now - lasting.loggedAt >= logMs) {
      this.#log.warn('the overload goes on: requests are rejected, because too many wait', {
        ...countsOf(lasting.lately),
        ...this.#describeLoad(),
      });
      lasting.loggedAt = now;
      lasting.lately = new Rejections();
    }
  }

  /** Logs the sums, because the overload is over or the worker stops. */
  end(): void {
    const lasting = this.#lasting;
    if (lasting === null) return;
    clearInterval(this.#timer);
    this.#lasting = null;
    const seconds = Math.round((lasting.lastAt - lasting.since) / 1000);
    this.#log.warn('the overload has ended', {
      ...countsOf(lasting.all),
      lasted_s: seconds,
      ...this.#describeLoad(),
    });
  }

  #begin(code: FailureCode, now: number): Lasting {
    this.#log.warn('an overload begins: requests are rejected, because too many wait', {
      code,
      ...this.#describeLoad(),
    });
    const all = new Rejections();
    const lasting = { since: now, all, lately: new Rejections(), lastAt: now, loggedAt: now };
    this.#timer = setInterval(() => this.check(performance.now()), checkMs).unref();
    this.#lasting = lasting;
    return lasting;
  }
}

function countsOf({ queueFull, waitedTooLong }: Rejections): LogFields {
  return {
    rejected: queueFull + waitedTooLong,
    queue_full: queueFull,
    waited_too_long: waitedTooLong,
  };
}
