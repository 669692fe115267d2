// docs/reference: the commands of /v1/query, /v1/batch and /v1/transaction run as they stand, and print what the pages show.
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { findBlocks } from '../../support/pages/page-blocks.ts';
import { localiseGateway, openCommands } from '../../support/pages/page-commands.ts';
import { useGateway } from '../../support/use-gateway.ts';

const { gateway } = useGateway(
  { workers: 2 },
  {
    prepare: async (database) => {
      await database.query(`
        create table orders (
          id bigint primary key auto_increment, user int, total decimal(12,2)) auto_increment = 1;
        create table order_line (order_id bigint not null, sku varchar(10) not null);
        create table stock (sku varchar(10) primary key, n int not null);
        insert into stock values ('A', 5);
        create table account (id int primary key, n int not null);
        insert into account values (1, 10)`);
    },
  },
);

/** The first commands of each page, with the heading above them. */
const pages = { batch: 'Ask', transaction: '', v1: 'Ask' } as const;

for (const [name, heading] of Object.entries(pages)) {
  test(`${name}.md: what its commands print`, async () => {
    // The page's own order has an id beyond what JavaScript's numbers hold. It comes last, since later ids follow it.
    if (name === 'v1') {
      const sql = "insert into orders values (9007199254740993, 7, '12.30')";
      await gateway.post('/v1/query', { sql });
    }
    const blocks = findBlocks(readFileSync(`docs/reference/${name}.md`, 'utf8'));
    const page = openCommands(blocks, heading, { localise: localiseGateway(gateway) });
    await page.run();
    page.end();
  });
}
