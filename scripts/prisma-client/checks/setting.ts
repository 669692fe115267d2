// The input of a check from scripts/prisma.

/** The URLs of gateways and server, with their passwords. */
type Setting = {
  /** The gateway with `pool = 44`. */
  readonly gateway: string;
  /** The gateway with `pool = 2`, transactions that end after a second without a statement, and `read committed` by init_sql. */
  readonly narrow: string;
  readonly server: string;
  /** The page's programs with their expected output. */
  readonly examples: readonly { readonly path: string; readonly printed: unknown }[];
};

export const setting = JSON.parse(process.env.DBHTTPD_PRISMA_CHECKS ?? '{}') as Setting;
