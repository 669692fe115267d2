// Three servers and a gateway with broken links, while an operator fails over and workers are killed: nothing is lost, nothing is written
// twice, and only the primary is written to.
import { setTimeout as pause } from 'node:timers/promises';
import { eventually } from '../../test/support/eventually.ts';
import { type Actor, type Crew, makeHistory, several } from '../../test/support/histories/crew.ts';
import {
  drawWay,
  idOf,
  type Write,
  writeRow,
} from '../../test/support/histories/failover-writes.ts';
import { countAll } from '../../test/support/histories/failover-writing.ts';
import { isSuccess } from '../../test/support/histories/reported.ts';
import { fetchKeptReplies, waitUntilIdle } from '../../test/support/histories/server-look.ts';
import { Findings, type Verdict } from '../support/verdicts.ts';
import { judgePartitions, partitionPromises, type Quiet } from './partition-judge.ts';
import { cutLinks, drawStrike, killWorkers, strike } from './partition-operator.ts';
import { openPartitionWorld, type PartitionWorld } from './partition-world.ts';

const clients = 8;
/** A client rests between two writes: servers that are rebuilt get all rows again. */
const restMs = 20;
/** If a gateway does not serve all servers by then, it refuses for good, and the operator names the primary. */
const patienceMs = 20_000;
const quietMs = 1_500;
const quietWrites = 20;
/** Lines of the gateway's log that are printed if the run broke a promise. */
const shownLines = 300;
/** The last keyed batch may be repeated for a minute and a half, and the start takes a while. */
const aroundMs = 4 * 60_000;

/** Runs for this many minutes. Resolves to the verdicts. The seed decides the events; the machine decides their exact times. */
export async function runPartitions(
  { minutes, seed }: { readonly minutes: number; readonly seed: number },
  say: (line: string) => void,
): Promise<Verdict[]> {
  const maxMs = minutes * 60_000 + aroundMs;
  return makeHistory({ name: 'partitions', seed, maxMs, say }, async (crew) => {
    const world = await crew.start('servers and a gateway', openPartitionWorld());
    return new Run(world, crew).make(performance.now() + minutes * 60_000);
  });
}

class Run {
  readonly #world: PartitionWorld;
  readonly #crew: Crew;
  readonly #findings = new Findings(Object.values(partitionPromises));
  readonly #writes: Write[] = [];
  readonly #quiets: Quiet[] = [];
  readonly #did = new Map<string, number>();
  #isOver = false;
  #isStriking = false;

  constructor(world: PartitionWorld, crew: Crew) {
    this.#world = world;
    this.#crew = crew;
  }

  async make(endsAt: number): Promise<Verdict[]> {
    const { say } = this.#crew;
    await this.#crew.work({
      ...several('client', clients, (actor, number) => this.#write(actor, number)),
      operator: (actor) => this.#operate(actor, endsAt),
      network: (actor) => this.#disturb('links cut', cutLinks, actor),
      killer: (actor) => this.#disturb('workers killed', killWorkers, actor),
    });
    this.#crew.note('looks at the servers');
    const { set, reigns, strays } = this.#world;
    await waitUntilIdle(set.primary());
    await set.waitForCatchUp();
    for (const key of await this.#world.keysWithoutReply()) {
      this.#findings.breach(partitionPromises.whole, key);
    }
    const breaches = judgePartitions({
      writes: this.#writes,
      reigns,
      quiets: this.#quiets,
      rows: await this.#world.rowsOf(set.primary()),
      strays,
      keys: (await fetchKeptReplies(set.primary())).filter((reply) => reply !== 'null').map(idOf),
    });
    for (const { promise, example } of breaches) this.#findings.breach(promise, example);
    say(`what was done: ${[...this.#did].map(([what, n]) => `${n} ${what}`).join(', ')}`);
    say(`${strays.length} rows were on a former primary alone`);
    for (const [what, n] of countAll(this.#writes)) say(`  ${String(n).padStart(6)} ${what}`);
    if (this.#findings.breaches() > 0) {
      // At once: the run's own end might fail, too.
      for (const { promise, example } of breaches) say(`BREACH ${promise}: ${example}`);
      say(this.#world.log().split('\n').slice(-shownLines).join('\n'));
    }
    return this.#findings.verdicts();
  }

  async #write({ random, note }: Actor, number: number): Promise<void> {
    for (let count = 0; !this.#isOver && !this.#crew.isOver; count += 1) {
      const id = count * clients + number;
      const way = drawWay(random);
      note(`write ${id} by ${way}`);
      this.#writes.push(await writeRow(this.#world.gateway, id, way));
      await pause(restMs);
    }
  }

  /** Rounds: a strike while links are cut and workers are killed, then a time of peace, in which everything must recover. */
  async #operate({ random, note }: Actor, endsAt: number): Promise<void> {
    try {
      await this.#settle(note);
      while (performance.now() < endsAt && !this.#crew.isOver) {
        const how = drawStrike(random);
        this.#count(how);
        this.#isStriking = true;
        const steps: string[] = [];
        await strike(this.#world, how, random, (step) => {
          steps.push(step);
          note(step);
        });
        this.#isStriking = false;
        await this.#settle(note);
        this.#crew.say(`${how}: ${steps.join('; ')}`);
      }
    } finally {
      this.#isStriking = false;
      this.#isOver = true;
    }
  }

  /** Waits until the gateway uses all servers again, or names the primary. After that nothing may fail for a while. */
  async #settle(note: (step: string) => void): Promise<void> {
    note('waits until the gateway uses all servers');
    await this.#world.set.waitForCatchUp();
    const isInPlace = () => this.#world.isInPlace();
    const limits = { timeoutMs: patienceMs, everyMs: 100 };
    const becomesInPlace = () =>
      eventually('the gateway uses all servers', isInPlace, limits).catch(() => false);
    if (!(await becomesInPlace())) {
      this.#count('--primary');
      this.#crew.say(`the gateway refuses: ${await this.#world.describeReadiness()}`);
      await this.#world.namePrimary();
      if (!(await becomesInPlace())) {
        const why = await this.#world.describeReadiness();
        this.#findings.breach(partitionPromises.served, `also after --primary: ${why}`);
        return;
      }
    }
    note('writes in peace');
    const fromMs = performance.now();
    const served = () =>
      this.#writes.filter(({ reported }) =>
        reported.some((one) => isSuccess(one) && one.fromMs >= fromMs),
      );
    await pause(quietMs);
    try {
      await eventually('writes succeed', () => served().length >= quietWrites);
    } catch (error) {
      this.#findings.breach(partitionPromises.served, String(error));
    }
    this.#quiets.push({ fromMs, toMs: performance.now() });
  }

  /** Runs a disturbance during each strike. */
  async #disturb(what: string, disturb: typeof cutLinks, { random, note }: Actor): Promise<void> {
    while (!this.#isOver && !this.#crew.isOver) {
      if (this.#isStriking) {
        note(what);
        this.#count(what, await disturb(this.#world, random, () => !this.#isStriking));
      }
      note('waits for a strike');
      await pause(50);
    }
  }

  #count(what: string, more = 1): void {
    this.#did.set(what, (this.#did.get(what) ?? 0) + more);
  }
}
