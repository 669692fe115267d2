// The tables of the world database, and what the demo's account may do with them.

/** Increases with every change of the tables, their rows or the account: a loaded database of another version is created again. */
export const worldVersion = 3;

/** Creates the empty database. Tables of their own hold the names that things have in languages. */
export const createWorld = `
drop database if exists world;
create database world character set utf8mb4;
use world;
create table language (
  code varchar(8) character set ascii primary key,
  name varchar(100) not null
) comment 'languages that CLDR knows';
create table country (
  code char(2) character set ascii primary key,
  name varchar(100) not null,
  language varchar(8) character set ascii comment 'the likeliest one',
  foreign key (language) references language (code)
) comment 'ISO 3166';
create table currency (
  code char(3) character set ascii primary key,
  name varchar(100) not null,
  symbol varchar(20) not null,
  digits tinyint unsigned not null
) comment 'ISO 4217';
create table timezone (
  name varchar(60) character set ascii primary key,
  country char(2) character set ascii,
  foreign key (country) references country (code)
) comment 'the IANA database';
create table timezone_transition (
  timezone varchar(60) character set ascii,
  at datetime comment 'UTC',
  offset_seconds int not null,
  is_dst boolean not null,
  abbreviation varchar(10) not null,
  primary key (timezone, at),
  foreign key (timezone) references timezone (name)
) comment 'when clocks were and will be changed';
create table place (
  id int unsigned auto_increment primary key,
  name varchar(60) not null,
  country char(2) character set ascii not null,
  timezone varchar(60) character set ascii not null,
  latitude decimal(8,5) not null,
  longitude decimal(8,5) not null,
  remark varchar(100),
  foreign key (country) references country (code),
  foreign key (timezone) references timezone (name)
) comment 'the principal place of each time zone';
${(['country', 'language', 'currency'] as const).map(namesTable).join('')}
create table note (
  id bigint unsigned auto_increment primary key,
  text varchar(1000) not null,
  written_at timestamp(6) not null default current_timestamp(6)
) comment 'the one table that the demo may write';
`;

function namesTable(of: 'country' | 'language' | 'currency'): string {
  const type = { country: 'char(2)', currency: 'char(3)', language: 'varchar(8)' }[of];
  return `create table ${of}_name (
  code ${type} character set ascii,
  language varchar(8) character set ascii,
  name varchar(200) not null,
  primary key (code, language),
  foreign key (code) references ${of} (code),
  foreign key (language) references language (code)
) comment 'what languages call it, from CLDR';
`;
}

/** Creates the demo's account: in world it reads everything and writes notes, nothing else. */
export function createAccount(user: string, password: string): string {
  return ['localhost', '127.0.0.1']
    .map(
      (host) => `create or replace user '${user}'@'${host}' identified by '${password}';
grant select on world.* to '${user}'@'${host}';
grant insert, update, delete on world.note to '${user}'@'${host}';
`,
    )
    .join('');
}
