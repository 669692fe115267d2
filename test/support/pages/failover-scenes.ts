// The events in each section of docs/operate/failover.md, between the commands that its operator types.
import type { GaleraPrograms } from '../../../scripts/support/galera-root.ts';
import type { ServerProgram } from '../../../scripts/support/private-server.ts';
import { type GaleraCluster, startGalera } from '../clusters/galera.ts';
import { type Group, startGroup } from '../clusters/group.ts';
import { type ReplicatedSet, startReplication } from '../clusters/replication.ts';
import { rolesBecome } from '../clusters/several-servers.ts';
import { type Played, playScenes, type Scene } from './failover-page.ts';
import { type Writers, writesTable } from './writers.ts';

type Say = (played: Played) => void;

const switchMariadb: Scene<ReplicatedSet> = {
  heading: 'MariaDB: switch over',
  play: async (page, { writers }) => {
    await page.watch();
    await page.watch();
    await page.run();
    await page.watch();
    await page.console();
    await page.run();
    await page.run();
    await page.run();
    await writers.succeed();
    await page.watch();
    await page.watch();
    await page.watch();
  },
};

const loseMariadb: Scene<ReplicatedSet> = {
  heading: 'MariaDB: fail over',
  play: async (page, { set, writers }) => {
    await killAtRest(set, set.primary(), writers);
    await page.watch();
    await page.console();
    await page.watch();
    await page.run();
    await page.run();
    await page.run();
    await writers.succeed();
    await page.watch();
  },
};

const returnMariadb: Scene<ReplicatedSet> = {
  heading: 'MariaDB: the former primary returns',
  play: async (page, { set }) => {
    await set.servers[0]?.restart();
    await page.watch();
    await page.console();
    await page.run();
    await page.run();
    await page.watch();
  },
};

const divergeMariadb: Scene<ReplicatedSet> = {
  heading: 'MariaDB: the former primary has more',
  play: async (page, { set, writers }) => {
    const [first, second] = firstTwo(set.servers);
    await killAtRest(set, first, writers);
    await set.promote(second);
    await writers.succeed();
    await first.restart();
    await first.query('insert into writes (n) values (-1)');
    await page.run();
    await page.run();
    await page.watch();
    await page.console();
    await page.watch();
  },
};

const leaveGalera: Scene<GaleraCluster> = {
  heading: 'Galera: take a node out',
  play: async (page, { writers }) => {
    await page.watch();
    await page.run();
    await page.watch();
    await page.console();
    await writers.succeed();
    await page.run();
    await page.watch();
  },
};

const loseGaleraNode: Scene<GaleraCluster> = {
  heading: 'Galera: a node dies',
  play: async (page, { set, writers }) => {
    const [first] = set.nodes;
    await first.kill();
    await writers.succeed();
    await page.watch();
    await page.watch();
    await first.restart();
    await page.watch();
  },
};

const loseGaleraQuorum: Scene<GaleraCluster> = {
  heading: 'Galera: the quorum is lost',
  play: async (page, { set, writers }) => {
    const gone = firstTwo(set.nodes);
    await Promise.all(gone.map((node) => node.kill()));
    await page.watch();
    await page.console();
    await page.run();
    await page.run();
    await writers.succeed();
    await page.watch();
    for (const node of gone) await node.restart();
    await page.watch();
  },
};

const switchGroup: Scene<Group> = {
  heading: 'MySQL group: switch over',
  play: async (page, { writers }) => {
    await page.run();
    await page.run();
    await writers.succeed();
    await page.watch();
  },
};

const loseGroupPrimary: Scene<Group> = {
  heading: 'MySQL group: the primary dies',
  play: async (page, { set, gateway, writers }) => {
    const [first] = set.members;
    await writers.rest();
    await first.promote();
    await set.waitForAll();
    await rolesBecome(gateway, ['primary', 'replica', 'replica']);
    writers.resume();
    await writers.succeed();
    await first.kill();
    await page.watch();
    await page.console();
    await writers.succeed();
    await page.watch();
    await page.watch();
    await first.restart();
    await page.watch();
    await page.run();
    await page.watch();
  },
};

const loseGroupMajority: Scene<Group> = {
  heading: 'MySQL group: the majority is lost',
  play: async (page, { set, writers }) => {
    const gone = firstTwo(set.members);
    await Promise.all(gone.map((member) => member.kill()));
    await page.watch();
    await page.console();
    await page.run();
    await page.run();
    await writers.succeed();
    await page.watch();
    for (const member of gone) await member.restart();
    await page.run();
    await page.watch();
  },
};

/** The headings of the sections that are played, by what their servers are. */
export const playedHeadings = {
  mariadb: [switchMariadb, loseMariadb, returnMariadb, divergeMariadb].map(
    ({ heading }) => heading,
  ),
  galera: [leaveGalera, loseGaleraNode, loseGaleraQuorum].map(({ heading }) => heading),
  group: [switchGroup, loseGroupPrimary, loseGroupMajority].map(({ heading }) => heading),
} as const;

/** Plays the sections about MariaDB's replication, with servers of the local mariadbd. */
export async function playMariadb(say: Say): Promise<void> {
  for (const scenes of [[switchMariadb], [loseMariadb, returnMariadb], [divergeMariadb]]) {
    const set = await startReplication();
    try {
      await set.primary().query(`${writesTable};
        create user repl@'127.0.0.1' identified by 'secret';
        grant replication slave on *.* to repl@'127.0.0.1';
        grant slave monitor on *.* to ${set.target.user}@'127.0.0.1'`);
      await set.waitForCatchUp();
      await playScenes({ set, servers: set.servers }, scenes, say);
    } finally {
      await set.stop();
    }
  }
}

/** Plays the sections about Galera. */
export async function playGalera(programs: GaleraPrograms, say: Say): Promise<void> {
  const set = await startGalera(programs);
  try {
    await set.nodes[0].query(writesTable);
    const scenes = [leaveGalera, loseGaleraNode, loseGaleraQuorum];
    await playScenes({ set, servers: set.nodes }, scenes, say);
  } finally {
    await set.stop();
  }
}

/** Plays the sections about a group of MySQL servers. */
export async function playGroup(program: ServerProgram, say: Say): Promise<void> {
  const set = await startGroup(program);
  try {
    await set.members[0].query(`${writesTable};
      create user repl@'127.0.0.1' identified by 'secret';
      grant replication slave, backup_admin, group_replication_stream, connection_admin on *.* to repl@'127.0.0.1'`);
    const scenes = [switchGroup, loseGroupPrimary, loseGroupMajority];
    await playScenes({ set, servers: set.members }, scenes, say);
  } finally {
    await set.stop();
  }
}

/** Kills a server while no write runs, nor is on its way to a replica: what asynchronous replication loses differs from run to run. */
async function killAtRest(
  set: ReplicatedSet,
  server: { readonly kill: () => Promise<void> },
  writers: Writers,
): Promise<void> {
  await writers.rest();
  await set.waitForCatchUp();
  await server.kill();
  writers.resume();
}

function firstTwo<Server>([first, second]: readonly Server[]): readonly [Server, Server] {
  if (first === undefined || second === undefined) throw new Error('there are three servers');
  return [first, second];
}
