// The database servers that are tested, and which release of Debian has each.

/** A server as Debian packages it. */
export type Product = {
  /** The name that --servers takes. */
  readonly name: string;
  readonly title: string;
  /** The beginning of its version. Debian moves on, and another version must not pass for this one. */
  readonly version: string;
  readonly suite: string;
  readonly package: string;
};

/** All servers, in the order of the table. */
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
