// The fault proxy by hand: stands between a client and a running server, with the fault that the command line chooses.
import { parseArgs } from 'node:util';
import { type Fault, startFaultProxy } from '../test/support/database/fault-proxy.ts';

const usage = `node dist/scripts/fault-proxy.js --to 127.0.0.1:3306 [--port 3307]
    [--match <regular expression> --fault <fault> [--times n] [--bytes n] [--ms n] [--fin]]

Faults: delay (--ms), stall, drop-reply, cut-reply (--bytes), cut-request (--bytes), cut-after-request.
Cuts are resets, with --fin orderly ends. Every statement that passes is printed.
Keys: r releases stalled replies, p partitions and heals, c cuts all connections, Ctrl-C ends.`;

const { values } = parseArgs({
  options: {
    to: { type: 'string' },
    port: { type: 'string', default: '0' },
    match: { type: 'string' },
    fault: { type: 'string', default: 'cut-reply' },
    times: { type: 'string' },
    bytes: { type: 'string', default: '0' },
    ms: { type: 'string', default: '1000' },
    fin: { type: 'boolean', default: false },
  },
});

const fault = chooseFault(values.fault, values.fin ? 'fin' : 'reset');
if (values.to === undefined || fault === null) {
  console.error(usage);
  process.exit(64);
}
const colon = values.to.lastIndexOf(':');
const upstream = { host: values.to.slice(0, colon), port: Number(values.to.slice(colon + 1)) };
const proxy = await startFaultProxy(upstream, { port: Number(values.port) });
console.log(`${proxy.host}:${proxy.port} -> ${values.to}`);

proxy.on((statement) => {
  console.log(statement);
  return false;
}, fault);
if (values.match !== undefined) {
  const times = values.times === undefined ? {} : { times: Number(values.times) };
  proxy.on(new RegExp(values.match, 'i'), fault, times);
}

let partitioned = false;
process.stdin.on('data', (line) => {
  const key = line.toString().trim();
  if (key === 'r') proxy.release();
  if (key === 'c') proxy.cutAll();
  if (key !== 'p') return;
  partitioned = !partitioned;
  if (partitioned) proxy.partition();
  else proxy.heal();
  console.log(partitioned ? 'partitioned' : 'healed');
});

function chooseFault(kind: string, how: 'fin' | 'reset'): Fault | null {
  const afterBytes = Number(values.bytes);
  switch (kind) {
    case 'delay':
      return { kind, ms: Number(values.ms) };
    case 'stall':
    case 'drop-reply':
      return { kind };
    case 'cut-reply':
    case 'cut-request':
      return { kind, afterBytes, how };
    case 'cut-after-request':
      return { kind, how };
    default:
      return null;
  }
}
