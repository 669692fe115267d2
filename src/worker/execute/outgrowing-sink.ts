// A sink before another one, that tells when what is made of the results gets too large to be held back.
// Must not know what is made of them.
import type { PacketsAhead } from '../../shared/mysql/framing.ts';
import type { Column, OkPacket, ServerError } from '../../shared/mysql/packets.ts';
import type { HeldResults, RunSink } from './statement-run.ts';

/** Hands everything on; `onOutgrown` may be called more than once. */
export class OutgrowingSink implements RunSink {
  readonly #sink: RunSink;
  readonly #onOutgrown: () => void;

  constructor(sink: RunSink, onOutgrown: () => void) {
    this.#sink = sink;
    this.#onOutgrown = onOutgrown;
  }

  get totalBytes(): number {
    return this.#sink.totalBytes;
  }

  get heldRoom(): number {
    return this.#sink.heldRoom;
  }

  columns(columns: readonly Column[], more: boolean): void {
    this.#sink.columns(columns, more);
  }

  row(bytes: Buffer, start: number, end: number): void {
    this.#sink.row(bytes, start, end);
    if (this.#sink.heldRoom === 0) this.#onOutgrown();
  }

  rows(ahead: PacketsAhead): void {
    this.#sink.rows?.(ahead);
    if (this.#sink.heldRoom === 0) this.#onOutgrown();
  }

  endOfRows(status: number): void {
    this.#sink.endOfRows(status);
  }

  ok(ok: OkPacket, more: boolean): void {
    this.#sink.ok(ok, more);
  }

  error(error: ServerError): void {
    this.#sink.error(error);
  }

  restart(): boolean {
    return this.#sink.restart();
  }

  held(): HeldResults | null {
    return this.#sink.held();
  }

  adopt(held: HeldResults): void {
    this.#sink.adopt(held);
  }
}
