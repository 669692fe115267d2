// Queries drawn at random over tables full of NULLs: joins, views, derived tables, CTEs, unions, groups with and without ROLLUP, aggregates of
// nothing, and expressions that make NULL or remove it.
import { pick } from './random.ts';

/** The statements that create the tables and views, for a session whose sql_mode has no ONLY_FULL_GROUP_BY. */
export const nullTables: readonly string[] = [
  `create table t (id int primary key, a int, b int not null, c varchar(10) not null, d date not null,
     e decimal(8,2), g int generated always as (b + 1) stored, h int generated always as (a + 1) virtual)`,
  `create table u (id bigint unsigned primary key, t int, x int not null, y varchar(10), z text not null,
     j json, k datetime not null, l enum('p','q') not null, m double not null)`,
  'create table v (id int not null, n int not null, w varchar(5), key (n))',
  "insert into t (id, a, b, c, d, e) values (1, null, 1, '', '2026-01-01', null), (2, 2, 0, 'x', '2026-02-28', 1.5), (3, null, -1, '7', '2026-01-01', null)",
  "insert into u values (1, 1, 0, null, '', null, '2026-01-01', 'p', 0), (2, null, 5, 'y', 'z', '{\"a\":null}', '2026-01-02', 'q', 1.5), (3, 9, -5, null, 'x', null, '2026-01-03', 'p', -1)",
  'create view plain as select id, b as n, c as s, a as m, 1 as one from t',
  'create view outer_join as select t.id, u.x as n, u.z as s, t.a as m, u.id as one from t left join u on u.t = t.id',
  "create view expressions as select id, coalesce(a, 0) as n, concat(c, 'x') as s, b + 1 as m, 1 as one from t",
  'create view outer_expressions as select t.id, e.n, e.s, e.m, e.one from t left join expressions e on e.id = t.a',
  'create view rolled as select b as id, b as n, c as s, count(*) as m, sum(b) as one from t group by b, c with rollup',
  'create view grouped as select max(id) as id, b as n, max(c) as s, sum(a) as m, count(*) as one from t where b > 0 group by b',
  'create view nothing as select max(v.id) as id, v.n as n, v.w as s, v.n + 1 as m, count(*) as one from v',
  'create view chained as select p.id, p.n, p.s, p.m, p.one from v right join plain p on v.n = p.one right join expressions e on p.s = e.s',
  'create view united as select id, b as n, c as s, 1 as m, 2 as one from t union all select id, x, z, null, 3 from u',
];

type Kind = 'number' | 'text';
/** A column as SQL can name it. */
type Column = { readonly sql: string; readonly kind: Kind };
type Source = { readonly sql: string; readonly columns: readonly Column[] };

const tables: readonly (readonly [string, readonly (readonly [string, Kind])[]])[] = [
  [
    't',
    [
      ['id', 'number'],
      ['a', 'number'],
      ['b', 'number'],
      ['c', 'text'],
      ['d', 'text'],
      ['e', 'number'],
      ['g', 'number'],
      ['h', 'number'],
    ],
  ],
  [
    'u',
    [
      ['id', 'number'],
      ['t', 'number'],
      ['x', 'number'],
      ['y', 'text'],
      ['z', 'text'],
      ['j', 'text'],
      ['k', 'text'],
      ['l', 'text'],
      ['m', 'number'],
    ],
  ],
  [
    'v',
    [
      ['id', 'number'],
      ['n', 'number'],
      ['w', 'text'],
    ],
  ],
];
const views: readonly string[] = [
  'plain',
  'outer_join',
  'expressions',
  'chained',
  'outer_expressions',
  'rolled',
  'grouped',
  'nothing',
  'united',
];
const viewColumns: readonly (readonly [string, Kind])[] = [
  ['id', 'number'],
  ['n', 'number'],
  ['s', 'text'],
  ['m', 'number'],
  ['one', 'number'],
];

/** Draws queries. Their columns have distinct names. A server may refuse one. */
export class NullQueries {
  readonly #random: () => number;
  #names = 0;

  /** @param random a source of numbers from 0 to 1 */
  constructor(random: () => number) {
    this.#random = random;
  }

  /** Draws the next query. */
  next(): string {
    this.#names = 0;
    return this.#query(2, pick(this.#random, [1, 2, 3, 4])).sql;
  }

  #chance(percent: number): boolean {
    return this.#random() * 100 < percent;
  }

  #pick<One>(list: readonly One[]): One {
    return pick(this.#random, list);
  }

  #name(): string {
    this.#names += 1;
    return `q${this.#names}`;
  }

  /** A query with so many columns, and the kinds of these. */
  #query(depth: number, width: number): { readonly sql: string; readonly kinds: readonly Kind[] } {
    const kinds = Array.from(
      { length: width },
      (): Kind => this.#pick(['number', 'number', 'text']),
    );
    const cte = depth > 0 && this.#chance(15) ? this.#name() : null;
    if (cte === null) return { sql: this.#body(depth, kinds, []), kinds };
    const inner = this.#query(depth - 1, 3);
    const columns = inner.kinds.map((kind, at) => ({ sql: `c${at}`, kind }));
    const body = this.#body(depth - 1, kinds, [{ name: cte, columns }]);
    return { sql: `with ${cte} as (${inner.sql}) ${body}`, kinds };
  }

  #body(
    depth: number,
    kinds: readonly Kind[],
    ctes: readonly { name: string; columns: readonly Column[] }[],
  ): string {
    const first = this.#select(depth, kinds, ctes);
    if (!this.#chance(12)) return first;
    const joined = this.#pick(['union', 'union all', 'union all', 'except', 'intersect']);
    return `${first} ${joined} ${this.#select(depth, kinds, ctes)}`;
  }

  #select(
    depth: number,
    kinds: readonly Kind[],
    ctes: readonly { name: string; columns: readonly Column[] }[],
  ): string {
    const from = this.#from(depth, ctes);
    const { columns } = from;
    const shape = this.#pick([
      'plain',
      'plain',
      'plain',
      'distinct',
      'grouped',
      'rollup',
      'implicit',
      'having',
      'window',
    ]);
    const where = this.#chance(50) ? ` where ${this.#condition(columns, depth)}` : '';
    const grouped = Array.from({ length: this.#pick([1, 2]) }, () => this.#pick(columns));
    const items = kinds.map((kind, at) => {
      const item = this.#item(shape, kind, columns, grouped, depth);
      return `${item} as c${at}`;
    });
    const group =
      shape === 'grouped' || shape === 'rollup'
        ? ` group by ${grouped.map(({ sql }) => sql).join(', ')}${shape === 'rollup' ? ' with rollup' : ''}`
        : '';
    const having =
      shape === 'having' ? ` having ${this.#aggregate(columns, 'number', depth)} is null` : '';
    const distinct = shape === 'distinct' ? 'distinct ' : '';
    return `select ${distinct}${items.join(', ')} from ${from.sql}${where}${group}${having}`;
  }

  #item(
    shape: string,
    kind: Kind,
    columns: readonly Column[],
    grouped: readonly Column[],
    depth: number,
  ): string {
    switch (shape) {
      case 'grouped':
      case 'rollup':
        return this.#chance(50)
          ? this.#over(grouped, kind, depth)
          : this.#aggregate(columns, kind, depth);
      case 'implicit':
        return this.#chance(65)
          ? this.#aggregate(columns, kind, depth)
          : this.#over(columns, kind, depth);
      case 'window':
        return this.#chance(50) ? this.#window(columns, kind) : this.#over(columns, kind, depth);
      default:
        return this.#over(columns, kind, depth);
    }
  }

  /** An expression of these columns; a column of its own as often as not. */
  #over(columns: readonly Column[], kind: Kind, depth: number): string {
    const own = columns.filter((column) => column.kind === kind);
    if (own.length > 0 && this.#chance(45)) return this.#pick(own).sql;
    return this.#expression(columns, kind, depth);
  }

  #from(depth: number, ctes: readonly { name: string; columns: readonly Column[] }[]): Source {
    let source = this.#source(depth, ctes);
    const joins = this.#pick([0, 0, 1, 1, 1, 2]);
    for (let count = 0; count < joins; count += 1) {
      const other = this.#source(depth, ctes);
      const join = this.#pick([
        'join',
        'left join',
        'left join',
        'right join',
        'left outer join',
        'cross join',
      ]);
      const columns = [...source.columns, ...other.columns];
      const on = join === 'cross join' ? '' : ` on ${this.#on(source.columns, other.columns)}`;
      source = { sql: `${source.sql} ${join} ${other.sql}${on}`, columns };
    }
    return source;
  }

  #on(left: readonly Column[], right: readonly Column[]): string {
    if (this.#chance(15)) return '1 = 0';
    return `${this.#pick(left).sql} = ${this.#pick(right).sql}`;
  }

  #source(depth: number, ctes: readonly { name: string; columns: readonly Column[] }[]): Source {
    const alias = this.#name();
    const under = (columns: readonly Column[]) =>
      columns.map(({ sql, kind }) => ({ sql: `${alias}.${sql}`, kind }));
    const [cte] = ctes;
    if (cte !== undefined && this.#chance(50)) {
      return { sql: `${cte.name} ${alias}`, columns: under(cte.columns) };
    }
    if (depth > 0 && this.#chance(25)) {
      const inner = this.#query(depth - 1, 3);
      const columns = inner.kinds.map((kind, at) => ({ sql: `c${at}`, kind }));
      return { sql: `(${inner.sql}) ${alias}`, columns: under(columns) };
    }
    const [name, columns] = this.#chance(35)
      ? ([this.#pick(views), viewColumns] as const)
      : this.#pick(tables);
    return {
      sql: `${name} ${alias}`,
      columns: under(columns.map(([sql, kind]) => ({ sql, kind }))),
    };
  }

  #number(columns: readonly Column[], depth: number): string {
    return this.#operand(columns, 'number', depth);
  }

  #text(columns: readonly Column[], depth: number): string {
    return this.#operand(columns, 'text', depth);
  }

  #operand(columns: readonly Column[], kind: Kind, depth: number): string {
    const own = columns.filter((column) => column.kind === kind);
    if (own.length > 0 && this.#chance(60)) return this.#pick(own).sql;
    if (depth > 0 && this.#chance(40)) return this.#expression(columns, kind, depth - 1);
    return kind === 'number'
      ? this.#pick(['0', '1', '2.5', 'null', '-1'])
      : this.#pick(["''", "'x'", 'null', "'7'"]);
  }

  #expression(columns: readonly Column[], kind: Kind, depth: number): string {
    const n = () => this.#number(columns, depth);
    const s = () => this.#text(columns, depth);
    const c = () => this.#condition(columns, depth - 1);
    const same = kind === 'number' ? n : s;
    const both = [
      () => `coalesce(${same()}, ${same()})`,
      () => `ifnull(${same()}, ${same()})`,
      () => `nullif(${same()}, ${same()})`,
      () => `if(${c()}, ${same()}, ${same()})`,
      () => `case when ${c()} then ${same()} else ${same()} end`,
      () => `case when ${c()} then ${same()} end`,
      () => `case ${same()} when ${same()} then ${same()} else ${same()} end`,
      () => `greatest(${same()}, ${same()})`,
      () => `(${this.#scalar(columns, kind, depth)})`,
    ];
    const numbers = [
      () => `(${n()} ${this.#pick(['+', '-', '*', '/', '%', 'div', '|', '='])} ${n()})`,
      () => this.#pick(['0', '7', '-1.5', '1e3']),
      () => `abs(${n()})`,
      () => `length(${s()})`,
      () => `(${n()} <=> ${n()})`,
      () => `(${s()} is null)`,
      () => `(${n()} in (${n()}, ${n()}))`,
      () => `(${s()} like ${s()})`,
      () => `exists (${this.#select(Math.max(0, depth - 1), ['number'], [])})`,
      () => `(${n()} in (${this.#select(Math.max(0, depth - 1), ['number'], [])}))`,
      () => `(${c()})`,
      () => `(not ${n()})`,
      () => `field(${s()}, ${s()})`,
      () => `cast(${s()} as signed)`,
      () => `datediff(${s()}, '2026-01-01')`,
      () => `round(${n()}, 1)`,
      () => `sqrt(${n()})`,
    ];
    const texts = [
      () => `concat(${s()}, ${s()})`,
      () => `concat_ws(${s()}, ${s()}, ${s()})`,
      () => this.#pick(["'x'", "''", "'2026-01-01'"]),
      () => `upper(${s()})`,
      () => `left(${s()}, 1)`,
      () => `replace(${s()}, 'x', ${s()})`,
      () => `substring(${s()}, ${n()})`,
      () => `cast(${n()} as char(20))`,
      () => `cast(${s()} as date)`,
      () => `date_add(${s()}, interval ${n()} day)`,
      () => `json_extract(${s()}, '$.a')`,
      () => `json_object('a', ${n()})`,
      () => `elt(${n()}, ${s()}, ${s()})`,
      () => `lpad(${s()}, 3, ${s()})`,
      () => `trim(${s()})`,
      () => `hex(${s()})`,
      () => `date_format(${s()}, '%Y')`,
    ];
    return this.#pick(kind === 'number' ? [...both, ...numbers] : [...both, ...texts])();
  }

  /** A subquery with one row. */
  #scalar(columns: readonly Column[], kind: Kind, depth: number): string {
    const from = this.#from(0, []);
    const inner = this.#chance(30) ? [...from.columns, ...columns] : from.columns;
    if (this.#chance(50)) return `select ${this.#aggregate(inner, kind, 0)} from ${from.sql}`;
    const where = this.#chance(50) ? ` where ${this.#condition(inner, 0)}` : '';
    return `select ${this.#over(inner, kind, Math.min(depth, 0))} from ${from.sql}${where} limit 1`;
  }

  #condition(columns: readonly Column[], depth: number): string {
    const level = Math.max(0, depth);
    return this.#pick([
      () =>
        `${this.#number(columns, level)} ${this.#pick(['=', '<', '>', '<>', '<=>'])} ${this.#number(columns, level)}`,
      () => `${this.#text(columns, level)} is ${this.#pick(['null', 'not null'])}`,
      () => '1 = 0',
      () => `${this.#number(columns, level)} > 0 or ${this.#number(columns, level)} is null`,
      () =>
        `${this.#number(columns, level)} > 0 and ${this.#text(columns, level)} = ${this.#text(columns, level)}`,
    ])();
  }

  #aggregate(columns: readonly Column[], kind: Kind, depth: number): string {
    const of = () => this.#operand(columns, kind, Math.min(depth, 1));
    const number = () => this.#number(columns, Math.min(depth, 1));
    const numbers = [
      () => 'count(*)',
      () => `count(${number()})`,
      () => `count(distinct ${number()})`,
      () => `sum(${number()})`,
      () => `avg(${number()})`,
      () => `min(${of()})`,
      () => `max(${of()})`,
      () => `coalesce(sum(${number()}), 0)`,
      () => `ifnull(max(${of()}), ${of()})`,
      () => `bit_or(${number()})`,
      () => `std(${number()})`,
      () => `(count(*) + ${number()})`,
    ];
    const texts = [
      () => `min(${of()})`,
      () => `max(${of()})`,
      () => `group_concat(${of()})`,
      () => `coalesce(max(${of()}), '')`,
      () => `concat(count(*), ${of()})`,
      () => `json_arrayagg(${of()})`,
    ];
    return this.#pick(kind === 'number' ? numbers : texts)();
  }

  #window(columns: readonly Column[], kind: Kind): string {
    const of = this.#operand(columns, kind, 0);
    const order = `order by ${this.#pick(columns).sql}`;
    const partition = this.#chance(50) ? `partition by ${this.#pick(columns).sql} ` : '';
    const functions = [
      `lag(${of})`,
      `lead(${of})`,
      `first_value(${of})`,
      `last_value(${of})`,
      `max(${of})`,
    ];
    const numbers = ['row_number()', 'rank()', 'count(*)', `sum(${of})`, 'ntile(2)'];
    const call = this.#pick(kind === 'number' ? [...functions, ...numbers] : functions);
    return `${call} over (${partition}${order})`;
  }
}
