// Notices a reader that takes nothing: the only sign of it, since a paused connection hides its peer's death.
// Must not know what is being read.
import type { Socket } from 'node:net';
import { waitingBytes } from './node-internals.ts';

const checkMs = 5_000;
/** MySQL's own limit for a reader that stalls (net_write_timeout) is 60 s. */
const stallChecks = 6;

/**
 * Calls `onStall` when a socket has had bytes to send for 30 to 35 s and none of them has left.
 * Node's socket timeout would start over once when a part of a write has left. Its owner must stop it.
 */
export class StallWatch {
  readonly #socket: Socket;
  readonly #onStall: () => void;
  readonly #checks: number;
  #timer: NodeJS.Timeout | undefined;
  #queued = 0;
  #unchanged = 0;

  /** @param laterMs how much longer than that it may take */
  constructor(socket: Socket, onStall: () => void, laterMs = 0) {
    this.#socket = socket;
    this.#onStall = onStall;
    this.#checks = stallChecks + Math.ceil(laterMs / checkMs);
  }

  start(): void {
    this.#queued = waitingBytes(this.#socket);
    this.#timer = setInterval(() => this.#check(), checkMs);
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  #check(): void {
    const queued = waitingBytes(this.#socket);
    this.#unchanged = queued > 0 && queued === this.#queued ? this.#unchanged + 1 : 0;
    this.#queued = queued;
    if (this.#unchanged < this.#checks) return;
    this.stop();
    this.#onStall();
  }
}
