// The database servers that are tested, and which release of Debian has each.

/** A server as Debian packages it. */
export type Product = {
  /** As --servers has it. */
  readonly name: string;
  readonly title: string;
  /** How its version begins. Debian moves on: another one must not pass for this. */
  readonly version: string;
  readonly suite: string;
  readonly package: string;
};

/** In the order of the table. */
export const products: readonly Product[] = [
  {
    name: 'mariadb-10.11',
    title: 'MariaDB',
    version: '10.11.',
    suite: 'bookworm',
    package: 'mariadb-server-core',
  },
  {
    name: 'mariadb-11.8',
    title: 'MariaDB',
    version: '11.8.',
    suite: 'trixie',
    package: 'mariadb-server-core',
  },
  {
    name: 'mysql-9.7',
    title: 'MySQL',
    version: '9.7.',
    suite: 'sid',
    package: 'mysql-server-core',
  },
];
