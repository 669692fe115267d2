// Lets node create sockets at the speed that its code was written for.
// Must not know who connects, nor to what.
import { Socket } from 'node:net';

/** V8 collects no feedback on a function before it has been called a few times. */
const enough = 50;

/**
 * Once is enough. net.Socket spreads its options and adds to what it gets. In V8 11.3 (Node 20) what a fast
 * spread makes cannot pass on the hidden classes that it grows: each socket's options get three of their own, and every
 * look at them misses its inline cache, about sixty times a connection. Options in dictionary mode make that one
 * spread a slow one for good, whose results share their classes. Other versions of V8 lose nothing by it. With 48
 * clients that connect for each request (point/48-close of scripts/bench), it took 128 -> 98 µs of CPU a point query.
 */
export function easeSocketCreation(): void {
  const options: { readable: boolean; writable?: boolean; handle?: null } = {
    readable: false,
    writable: false,
    handle: null,
  };
  // Deleting what was not added last turns an object into a dictionary.
  delete options.writable;
  for (let n = 0; n < enough; n += 1) new Socket(options as { readable: boolean }).destroy();
}
