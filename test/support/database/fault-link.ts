// One proxied connection: client's packets are recognised and handed over one by one, faults are done to it.
import { connect, type NetConnectOpts, type Socket } from 'node:net';
import { createSplitter, createStatementReader, type Packet, type Query } from './mysql-wire.ts';

/** A fault for one statement or its reply. `how` the client's connection ends: RST unless `fin`. */
export type Fault =
  /** The statement is held back this long before it is forwarded. */
  | { readonly kind: 'delay'; readonly ms: number }
  /** The statement is held back before `release()`; the server sees nothing of it. */
  | { readonly kind: 'hold' }
  /** Forwarded; of the reply nothing is passed on before `release()`. */
  | { readonly kind: 'stall' }
  /** Forwarded; the reply is swallowed, the connection stays open. */
  | { readonly kind: 'drop-reply' }
  /** Forwarded. The client gets this many bytes of the reply, then the connection ends. */
  | { readonly kind: 'cut-reply'; readonly afterBytes: number; readonly how?: 'fin' | 'reset' }
  /** This many bytes of the request reach the server (none without `afterBytes`), then both ends are cut. */
  | { readonly kind: 'cut-request'; readonly afterBytes?: number; readonly how?: 'fin' | 'reset' }
  /** The whole request reaches the server, the client's connection ends at once; the server may finish. */
  | { readonly kind: 'cut-after-request'; readonly how?: 'fin' | 'reset' }
  /** The same, but the server does not notice that the peer is gone: it keeps what it holds until it is ended. */
  | { readonly kind: 'abandon' };

type ReplyMode =
  | { readonly kind: 'pass' }
  | { readonly kind: 'hold' }
  | { readonly kind: 'swallow' }
  | { kind: 'cut'; left: number; readonly how: 'fin' | 'reset' };

/** The direction in which nothing gets through: the client's packets, the server's, or both. */
export type Direction = 'to server' | 'from server' | 'both';

/** One client and its connection to the server. */
export class FaultLink {
  readonly #client: Socket;
  readonly #server: Socket;
  readonly #faultFor: (query: Query) => Fault | null;
  readonly #timers = new Set<NodeJS.Timeout>();
  readonly #reader = createStatementReader();
  #reply: ReplyMode = { kind: 'pass' };
  #held: Buffer[] = [];
  #queue: Packet[] = [];
  #isKeeping = false;
  /** Forwards what a `hold` keeps; null: none does. */
  #letGo: (() => void) | null = null;
  #frozen: Direction | null = null;
  #lingers = false;

  constructor(client: Socket, upstream: NetConnectOpts, faultFor: (query: Query) => Fault | null) {
    this.#client = client;
    this.#faultFor = faultFor;
    this.#server = connect(upstream);
    const splitter = createSplitter();
    client.setNoDelay(true);
    this.#server.setNoDelay(true);
    client.on('data', (bytes: Buffer) => {
      if (this.#reader.isEncrypted()) {
        this.#forward(bytes);
        return;
      }
      this.#queue.push(...splitter.push(bytes));
      this.#work();
      // The client's first encrypted bytes may have come together with its wish for encryption.
      if (this.#reader.isEncrypted()) this.#forward(splitter.takeRest());
    });
    this.#server.on('data', (bytes: Buffer) => this.#answer(bytes));
    client.on('error', () => this.end('reset'));
    this.#server.on('error', () => this.end('reset'));
    client.on('close', () => {
      if (!this.#lingers) this.#server.destroy();
    });
    this.#server.on('end', () => client.end());
    this.#server.on('close', () => client.end());
    client.on('drain', () => {
      if (this.#passes('from server')) this.#server.resume();
    });
  }

  /**
   * Stops reading what comes from there, as a network that loses it. `thaw` undoes it, and what was lost arrives:
   * TCP sends it again. Neither end hears of the other's close meanwhile.
   */
  freeze(direction: Direction): void {
    this.#frozen = direction;
    if (!this.#passes('to server')) this.#client.pause();
    if (!this.#passes('from server')) this.#server.pause();
  }

  thaw(): void {
    this.#frozen = null;
    this.#client.resume();
    this.#server.resume();
  }

  #passes(direction: Direction): boolean {
    return this.#frozen !== direction && this.#frozen !== 'both';
  }

  /** Passes on what a `hold` or a `stall` holds back, and everything after it. */
  release(): void {
    this.#letGo?.();
    if (this.#reply.kind === 'hold') this.#reply = { kind: 'pass' };
    for (const bytes of this.#held.splice(0)) this.#answer(bytes);
  }

  /** Whether the server has answered, and a `stall` holds the answer back. */
  get holdsAnswer(): boolean {
    return this.#held.length > 0;
  }

  /** Ends both connections. */
  end(how: 'fin' | 'reset'): void {
    this.#endClient(how);
    this.#server.destroy();
  }

  #endClient(how: 'fin' | 'reset'): void {
    for (const timer of this.#timers) clearTimeout(timer);
    // A reset while the FIN is on its way fails inside libuv and leaves the handle open for ever.
    if (how === 'reset' && !this.#client.writableEnded) this.#client.resetAndDestroy();
    else this.#client.destroy();
  }

  #work(): void {
    while (!this.#isKeeping) {
      const packet = this.#queue.shift();
      if (packet === undefined) return;
      const query = this.#reader.query(packet);
      const fault = query === null ? null : this.#faultFor(query);
      if (query !== null) this.#reply = { kind: 'pass' };
      if (fault === null) this.#forward(packet.whole);
      else this.#perform(fault, packet);
    }
  }

  #perform(fault: Fault, packet: Packet): void {
    switch (fault.kind) {
      case 'delay':
        this.#later(fault.ms, this.#keep(packet));
        return;
      case 'hold':
        this.#letGo = this.#keep(packet);
        return;
      case 'stall':
        this.#forwardExpecting({ kind: 'hold' }, packet);
        return;
      case 'drop-reply':
        this.#forwardExpecting({ kind: 'swallow' }, packet);
        return;
      case 'cut-reply':
        this.#forwardExpecting(
          { kind: 'cut', left: fault.afterBytes, how: fault.how ?? 'reset' },
          packet,
        );
        return;
      case 'cut-request':
        this.#queue = [];
        this.#server.end(packet.whole.subarray(0, fault.afterBytes ?? 0));
        this.#endClient(fault.how ?? 'reset');
        return;
      case 'cut-after-request':
        this.#queue = [];
        this.#lingers = true;
        this.#server.unref();
        this.#forwardExpecting({ kind: 'swallow' }, packet);
        this.#server.once('data', () => this.#server.destroy());
        this.#endClient(fault.how ?? 'reset');
        return;
      case 'abandon':
        this.#queue = [];
        this.#lingers = true;
        this.#server.unref();
        this.#forwardExpecting({ kind: 'swallow' }, packet);
        this.#endClient('reset');
        return;
      default:
        fault satisfies never;
    }
  }

  /** Forwards nothing from here on. The returned function forwards this packet and those that came after it. */
  #keep(packet: Packet): () => void {
    this.#isKeeping = true;
    return () => {
      this.#isKeeping = false;
      this.#letGo = null;
      this.#forward(packet.whole);
      this.#work();
    };
  }

  #later(ms: number, act: () => void): void {
    const timer = setTimeout(() => {
      this.#timers.delete(timer);
      act();
    }, ms);
    this.#timers.add(timer);
  }

  #forwardExpecting(reply: ReplyMode, packet: Packet): void {
    this.#reply = reply;
    this.#forward(packet.whole);
  }

  #forward(bytes: Buffer): void {
    if (!this.#server.destroyed) this.#server.write(bytes);
  }

  #answer(bytes: Buffer): void {
    this.#reader.listen(bytes);
    const reply = this.#reply;
    if (reply.kind === 'swallow') return;
    if (reply.kind === 'hold') {
      this.#held.push(bytes);
      return;
    }
    if (reply.kind === 'cut' && bytes.length >= reply.left) {
      const { left, how } = reply;
      this.#reply = { kind: 'swallow' };
      if (left === 0) this.end(how);
      else this.#client.write(bytes.subarray(0, left), () => this.end(how));
      return;
    }
    if (reply.kind === 'cut') reply.left -= bytes.length;
    if (!this.#client.destroyed && !this.#client.write(bytes)) this.#server.pause();
  }
}
