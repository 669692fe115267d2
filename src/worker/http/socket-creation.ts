// Makes the creation of sockets fast.
import { Socket } from 'node:net';

/** V8 collects no feedback on a function before a few calls. */
const warmUpCalls = 50;

/**
 * Lets node create sockets at full speed; to be called once. net.Socket spreads its options and adds to the result. In V8 11.3 (Node 20)
 * objects from a fast spread do not share the hidden classes that they grow: the options of each socket get three of their own, and each
 * access to them misses its inline cache, about sixty times a connection. Options in dictionary mode turn that spread into a slow one for
 * good, whose results share their classes. Other versions of V8 lose nothing by it. With 48 clients that connect for each request
 * (point/48-close of scripts/bench), a point query took 98 µs of CPU instead of 128.
 */
export function easeSocketCreation(): void {
  const options: { readable: boolean; writable?: boolean; handle?: null } = {
    readable: false,
    writable: false,
    handle: null,
  };
  // Deleting a property that was not added last turns an object into a dictionary.
  delete options.writable;
  for (let n = 0; n < warmUpCalls; n += 1) new Socket(options as { readable: boolean }).destroy();
}
