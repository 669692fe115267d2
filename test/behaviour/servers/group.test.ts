// Members of a MySQL group with several primaries, to an account that may not see the group: one that has not joined it is not written to.
// The answers are those of MySQL 9.7.4; a real group is not started here.
import { after, before, test } from 'node:test';
import { rolesBecome, startBefore } from '../../support/clusters/several-servers.ts';
import { type FakeMysql, startFakeMysql } from '../../support/database/fake-mysql.ts';
import { errorPacket, resultSet } from '../../support/database/mysql-answer.ts';
import type { Gateway } from '../../support/gateway.ts';

const variables = {
  server_id: '',
  read_only: '0',
  super_read_only: '0',
  innodb_read_only: '0',
  gtid_executed: 'aaaaaaaa-bbbb-4ccc-8ddd-eeeeeeeeeeee:1-5102:1000004-1000834',
  group_replication_group_name: 'aaaaaaaa-bbbb-4ccc-8ddd-eeeeeeeeeeee',
  group_replication_single_primary_mode: '0',
};

type Member = { readonly number: string; messages: string };

function answerAs(member: Member, statement: string): readonly Buffer[] | null {
  const row = (cells: readonly string[]) =>
    resultSet(
      cells.map((_cell, at) => ({ name: `c${at}` })),
      [cells],
    );
  const values = { ...variables, server_id: member.number };
  if (statement.includes('@@hostname')) return row(['h', '3306', member.number, '1700000000']);
  if (statement.startsWith('SHOW GLOBAL VARIABLES WHERE')) {
    return resultSet([{}, {}], Object.entries(values));
  }
  if (statement.startsWith('SELECT @@global.server_id')) return row(Object.values(values));
  if (/^SHOW (REPLICA|SLAVE) STATUS/.test(statement)) return [errorPacket(1227, 'denied')];
  if (statement.includes('replication_group_members')) return [errorPacket(1142, 'denied')];
  if (statement.includes('Gr_control_messages_sent_count')) {
    return row(['Gr_control_messages_sent_count', member.messages]);
  }
  return null;
}

const members: readonly Member[] = [
  { number: '1', messages: '0' },
  { number: '2', messages: '5408' },
];
let servers: FakeMysql[] = [];
let gateway: Gateway;

before(async () => {
  servers = await Promise.all(
    members.map((member) =>
      startFakeMysql({
        answer: (client, statement) => {
          const packets = answerAs(member, statement);
          if (packets !== null) client.send(packets, 1);
          return packets !== null;
        },
      }),
    ),
  );
  const host = servers.map(({ target }) => `${target.host}:${target.port}`).join(', ');
  const { user, password, name } = (servers[0] as FakeMysql).target;
  gateway = await startBefore({ target: { host, user, password, name } });
});

after(async () => {
  await gateway?.stop();
  await Promise.all(servers.map((server) => server.stop()));
});

test('a server that has not joined its group is not written to, although it is writable and the first of host', async () => {
  await rolesBecome(gateway, ['unusable', 'primary']);
});

test('once it takes part it is the first of host again', async () => {
  (members[0] as Member).messages = '3';
  await rolesBecome(gateway, ['primary', 'replica']);
});
