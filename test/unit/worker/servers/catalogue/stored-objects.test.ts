// Tables, views and triggers of a catalogue: only what is proven to be harmless is.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  type BuiltIns,
  builtInEverywhere,
  builtInsOf,
} from '../../../../../src/shared/sql/vocabulary.ts';
import { StoredObjects } from '../../../../../src/worker/servers/catalogue/stored-objects.ts';

type Wish = {
  readonly tables?: readonly string[];
  readonly views?: Readonly<Record<string, string>>;
  readonly triggers?: Readonly<Record<string, string>>;
  readonly builtIns?: BuiltIns;
  readonly ignoresCase?: boolean;
};

function create({ tables = [], views = {}, triggers = {}, builtIns, ignoresCase }: Wish) {
  const objects = new StoredObjects({
    ownSchema: 'db',
    ignoresCase: ignoresCase ?? false,
    builtIns: builtIns ?? builtInEverywhere,
  });
  for (const table of tables) objects.addTable('db', table, 'BASE TABLE');
  for (const view of Object.keys(views)) objects.addTable('db', view, 'VIEW');
  for (const [view, text] of Object.entries(views)) objects.addView('db', view, text);
  for (const [table, body] of Object.entries(triggers)) objects.addTrigger('db', table, body);
  const named = (name: string) => [{ schema: null, name }];
  return {
    objects,
    reads: (name: string) => objects.effectsOfReading(named(name)).isHarmless,
    repeats: (name: string) => objects.effectsOfReading(named(name)).isRepeatable,
    writes: (name: string) => objects.effectsOfWriting(named(name)).isHarmless,
  };
}

test('a base table is harmless, an unknown one is not', () => {
  const { objects, reads, writes } = create({ tables: ['t'] });
  assert.deepEqual([reads('t'), writes('t'), reads('T'), reads('u')], [true, true, false, false]);
  assert.equal(objects.effectsOfReading([{ schema: 'db', name: 't' }]).isHarmless, true);
  assert.equal(objects.effectsOfReading([{ schema: 'other', name: 't' }]).isHarmless, false);
  assert.equal(create({ tables: ['t'], ignoresCase: true }).reads('T'), true);
  objects.addTable('db', 's', 'SEQUENCE');
  assert.equal(reads('s'), false);
  const telling = objects.effectsOfReading([{ schema: 'information_schema', name: 'tables' }]);
  assert.deepEqual(telling, { isHarmless: true, isRepeatable: false });
});

test('a view is as harmless as its calls and tables, to any depth; cycles and hidden definitions are unknown', () => {
  const { reads, repeats } = create({
    tables: ['t'],
    views: {
      plain: 'select upper(`db`.`t`.`a`) AS `a` from `db`.`t`',
      deep: 'select `db`.`plain`.`a` AS `a` from (`db`.`plain` join `db`.`t`)',
      calls: 'select `f`(`db`.`t`.`a`) AS `a` from `db`.`t`',
      deeper: 'select 1 AS `1` from `db`.`deep` join `db`.`calls`',
      locks: "select get_lock('x',0) AS `a`",
      locksRows: 'select `db`.`t`.`a` AS `a` from `db`.`t` for update',
      asks: 'select last_insert_id() AS `a`',
      chance: 'select uuid() AS `a` from `db`.`t`',
      beyond: 'select 1 AS `1` from `elsewhere`.`t`',
      one: 'select 1 AS `1` from `db`.`two`',
      two: 'select 1 AS `1` from `db`.`one`',
      hidden: '',
    },
  });
  for (const name of ['plain', 'deep', 'chance']) assert.equal(reads(name), true, name);
  for (const name of [
    'calls',
    'deeper',
    'locks',
    'locksRows',
    'asks',
    'beyond',
    'one',
    'two',
    'hidden',
  ]) {
    assert.equal(reads(name), false, name);
  }
  assert.deepEqual([repeats('plain'), repeats('deep'), repeats('chance')], [true, true, false]);
});

test('a trigger counts for writes, also through a view, and only the simplest bodies are harmless', () => {
  const bodies: readonly (readonly [body: string, harmless: boolean])[] = [
    ['set new.a = upper(new.b)', true],
    ['SET NEW.a = 1, NEW.b = (select max(x) from log)', true],
    ['insert into log values (new.a)', true],
    ['begin insert into log values (new.a); update log set x = old.a where x = 1; end', true],
    ['BEGIN set new.a = 1; delete from log; END', true],
    ['set @x = new.a', false],
    ['set new.a = @x', false],
    ['set new.a = (@x := 1)', false],
    ["set sql_mode = ''", false],
    ["set new.a = 1, sql_mode = ''", false],
    ["set new.a = get_lock('x', 0)", false],
    ['set new.a = last_insert_id(7)', false],
    ['set new.a = last_insert_id()', false],
    ['set new.a = f()', false],
    ['call p()', false],
    ['begin call p(); end', false],
    ['begin if 1 then insert into log values (1); end if; end', false],
    ['begin not atomic insert into log values (1); end', false],
    ['insert into unknown values (1)', false],
    ['insert into guarded values (1)', false],
    ['do 1', false],
    ['set', false],
    ['', false],
  ];
  for (const [body, harmless] of bodies) {
    const { reads, writes } = create({
      tables: ['t', 'log', 'guarded'],
      views: { v: 'select `db`.`t`.`a` AS `a` from `db`.`t`' },
      triggers: { t: body, guarded: 'call p()' },
    });
    assert.deepEqual([reads('t'), reads('v')], [true, true], body);
    assert.deepEqual([writes('t'), writes('v')], [harmless, harmless], body);
  }
});

test("a name without a schema in a view or a trigger is looked up in its own schema, not in the session's", () => {
  const { objects } = create({ tables: ['log'] });
  for (const name of ['t', 'log']) objects.addTable('other', name, 'BASE TABLE');
  objects.addTable('other', 'v', 'VIEW');
  objects.addView('other', 'v', 'select 1 AS `1` from `log`');
  objects.addTrigger('other', 't', 'insert into log values (new.a)');
  objects.addTrigger('other', 'log', 'set @left = 4711');
  const writes = (schema: string, name: string) =>
    objects.effectsOfWriting([{ schema, name }]).isHarmless;
  assert.deepEqual([writes('db', 'log'), writes('other', 't')], [true, false]);
  assert.equal(writes('other', 'v'), false);
});

test('a function that is not built into this server is not trusted for its name', () => {
  const views = { digests: 'select md5(`db`.`t`.`a`) AS `a` from `db`.`t`' };
  const on = (flavour: 'mariadb' | 'mysql', version: string) =>
    create({ tables: ['t'], views, builtIns: builtInsOf(flavour, version) }).reads('digests');
  assert.equal(on('mariadb', '5.5.5-10.11.9-MariaDB'), true);
  assert.equal(on('mariadb', '11.8.6-MariaDB'), true);
  assert.equal(on('mysql', '8.0.36'), true);
  assert.equal(on('mysql', '9.7.4'), false);
  assert.equal(on('mysql', ''), false);
  assert.equal(create({ tables: ['t'], views }).reads('digests'), false);
});

test('unknown names are distinguished from known ones that are not trusted', () => {
  const { objects, reads } = create({ tables: ['t'], views: { unseen: '' } });
  const holds = (schema: string | null, name: string) => objects.holds([{ schema, name }]);
  assert.deepEqual([reads('unseen'), holds(null, 'unseen')], [false, true]);
  assert.deepEqual([reads('new'), holds(null, 'new')], [false, false]);
  assert.deepEqual([holds('db', 't'), holds('elsewhere', 't')], [true, false]);
  assert.equal(holds('information_schema', 'tables'), true);
});

test('a write is undone if all tables have transactions, also those of views and triggers', () => {
  const { objects } = create({
    views: {
      view: 'select `db`.`t`.`a` AS `a` from `db`.`t`',
      worse: 'select 1 AS `a` from `db`.`m`',
    },
  });
  for (const table of ['t', 'logs', 'spills', 'calls'])
    objects.addTable('db', table, 'BASE TABLE', true);
  objects.addTable('db', 'm', 'BASE TABLE', false);
  objects.addTrigger('db', 'logs', 'insert into t values (new.a)');
  objects.addTrigger('db', 'spills', 'insert into m values (new.a)');
  objects.addTrigger('db', 'calls', 'insert into t values (f(new.a))');
  const undoes = (...names: string[]) =>
    objects.undoesWrites(names.map((name) => ({ schema: null, name })));
  assert.equal(undoes('t', 'logs', 'view'), true);
  for (const name of ['m', 'spills', 'calls', 'worse', 'nope']) {
    assert.equal(undoes('t', name), false, name);
  }
});
