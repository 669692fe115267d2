// The process of a detached supervisor: takes over what the launcher prepared, reports once, and runs the instance.
import '../shared/process/ignored-signals.ts';
import { closeSync } from 'node:fs';
import type { ListenAddress } from '../shared/config/addresses.ts';
import type { Sections } from '../shared/config/config.ts';
import type { NamedBySection } from '../shared/named/load-sections.ts';
import type { ExitCode } from '../shared/process/exit-codes.ts';
import { openLog } from '../shared/process/log.ts';
import { inheritClaim } from './claim/claim.ts';
import { supervise } from './supervise.ts';
import { live } from './supervisor-process.ts';

/** Descriptors of the detached supervisor, after stdio and the channel. */
const inherited = { claim: 4, listener: 5 } as const;

/** From the launcher. Settings are sent through this channel, never in arguments or environment. */
export type ToDaemon = {
  readonly sections: Sections;
  readonly named: NamedBySection;
  readonly address: ListenAddress;
  /** The socket was inherited (socket activation) and outlives the instance. */
  readonly outlives: boolean;
  /** The longest time until its workers listen. */
  readonly bootBoundMs: number;
};

/** From the detached supervisor. */
export type FromDaemon =
  | { readonly kind: 'ready' }
  | { readonly kind: 'running' }
  | { readonly kind: 'failed'; readonly exitCode: ExitCode };

process.umask(0o027);
// If the launcher dies before it has sent the order, there is nothing to run.
const giveUp = () => process.exit(1);
process.once('disconnect', giveUp);
process.once('message', (order: ToDaemon) => {
  process.off('disconnect', giveUp);
  void run(order);
});
report({ kind: 'ready' });

async function run({ sections, named, address, outlives, bootBoundMs }: ToDaemon): Promise<void> {
  const [config] = sections;
  process.title = `dbhttpd: supervisor ${config.section}`;
  const log = openLog({ path: config.log }, config.logLevel, `${process.pid}`, 'at once');
  let isOpen = true;
  const close = () => {
    if (isOpen) closeSync(inherited.listener);
    isOpen = false;
  };
  const supervision = supervise({
    sections,
    named,
    claim: inheritClaim(inherited.claim),
    listener: { fd: inherited.listener, address, outlives, close },
    log,
    logTo: 'file',
    bootBoundMs,
    onRunning: () => {
      process.off('disconnect', supervision.stop);
      report({ kind: 'running' }, () => process.disconnect());
    },
  });
  // If the launcher is gone before the instance runs, the start is given up.
  process.once('disconnect', supervision.stop);
  const exitCode = await live(supervision, log);
  if (process.connected && exitCode !== 0) {
    report({ kind: 'failed', exitCode }, () => process.exit(exitCode));
  } else {
    process.exit(exitCode);
  }
}

function report(message: FromDaemon, sent: () => void = () => {}): void {
  process.send?.(message, undefined, undefined, sent);
}
