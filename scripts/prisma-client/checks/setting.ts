// What scripts/prisma hands to a check.

/** Where the gateways and the server are, by URLs with their passwords. */
type Setting = {
  /** Of a gateway with `pool = 44`. */
  readonly gateway: string;
  /** Of one with `pool = 2`, transactions that end when they lie idle for a second, and `read committed` by its init_sql. */
  readonly narrow: string;
  readonly server: string;
  /** The page's programs, each with what it has to print. */
  readonly examples: readonly { readonly path: string; readonly printed: unknown }[];
};

export const setting = JSON.parse(process.env.DBHTTPD_PRISMA_CHECKS ?? '{}') as Setting;
