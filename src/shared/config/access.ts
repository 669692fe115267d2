// Access: the file of clients and the JWK set, which are read together and replaced together.
import { type Client, type Clients, defaultClient } from '../clients/client.ts';
import { isLocal, isLoopbackName, type ListenAddress } from './addresses.ts';
import { type ClientsSetting, parseClients } from './clients-file.ts';
import type { TextFault } from './ini-section.ts';
import { type JwtKey, parseJwtKeys } from './jwt-keys.ts';
import { readText } from './regular-file.ts';

/** The contents of the two files. */
export type Access = {
  readonly clients: Clients;
  /** The keys that verify JSON Web Tokens. Empty: no `jwt_keys` is set. */
  readonly jwtKeys: readonly JwtKey[];
};

/** The paths of the two files. Null: not set. */
export type AccessFiles = { readonly clients: string | null; readonly jwt_keys: string | null };

/** A fault of one of the files. `inside`: its place in the file; null: it is a fault of the file as a whole. */
export type AccessFault = {
  readonly key: keyof AccessFiles;
  readonly problem: string;
  readonly inside: FaultPlace | null;
};

/** A place in a file: `section` is the client in a file of clients. */
export type FaultPlace = Omit<TextFault, 'problem'> & { readonly section: string | null };

/**
 * The clients that may send requests: those of the file, and `default` if the first section has a token of its own, or there is no file.
 * @param tokens those of the first section
 */
export function listClients(
  tokens: readonly string[],
  access: Pick<Access, 'clients'> | null,
): readonly Client[] {
  if (access === null) return [defaultClient];
  const { clients, anonymous } = access.clients;
  return [
    ...clients,
    ...(tokens.length === 0 ? [] : [defaultClient]),
    ...(anonymous === null ? [] : [anonymous]),
  ];
}

/** Reads both files. Null: `clients` is not set, or there are faults. */
export function readAccess(
  files: AccessFiles,
  setting: Omit<ClientsSetting, 'hasKeys'>,
): { readonly access: Access | null; readonly faults: readonly AccessFault[] } {
  const { clients: path } = files;
  if (path === null) return { access: null, faults: [] };
  const clients = readClients(path, { ...setting, hasKeys: files.jwt_keys !== null });
  const keys = readJwtKeys(files);
  const faults = [...clients.faults, ...keys.faults];
  if (clients.clients === null || keys.keys === null) return { access: null, faults };
  return { access: Object.freeze({ clients: clients.clients, jwtKeys: keys.keys }), faults };
}

function readClients(
  path: string,
  setting: ClientsSetting,
): { readonly clients: Clients | null; readonly faults: readonly AccessFault[] } {
  const read = readText(path, 'read or write');
  if (!read.ok) return { clients: null, faults: [fault('clients', read.problem)] };
  const parsed = parseClients(read.text, setting);
  if (parsed.ok) return { clients: parsed.clients, faults: [] };
  return {
    clients: null,
    faults: parsed.faults.map(({ problem, ...inside }) => fault('clients', problem, inside)),
  };
}

/** Reads the JWK set alone. `keys` null: it has faults. */
export function readJwtKeys({ jwt_keys: path }: Pick<AccessFiles, 'jwt_keys'>): {
  readonly keys: readonly JwtKey[] | null;
  readonly faults: readonly AccessFault[];
} {
  if (path === null) return { keys: [], faults: [] };
  const read = readText(path, 'write');
  if (!read.ok) return { keys: null, faults: [fault('jwt_keys', read.problem)] };
  const parsed = parseJwtKeys(read.text);
  if (parsed.ok) return { keys: Object.freeze(parsed.keys), faults: [] };
  return {
    keys: null,
    faults: parsed.faults.map(({ problem, key, line }) =>
      fault('jwt_keys', problem, { section: null, key, line }),
    ),
  };
}

function fault(
  key: keyof AccessFiles,
  problem: string,
  inside: FaultPlace | null = null,
): AccessFault {
  return { key, problem, inside };
}

/** The settings that decide who can reach the instance. */
export type Exposing = {
  readonly listen: ListenAddress;
  /** Null: any. */
  readonly allowHosts: readonly string[] | null;
  readonly httpsCert: string | null;
  readonly insecure: boolean;
};

/** Why requests without credentials could come from elsewhere than this machine's own programs. Null: they cannot, or `insecure` accepts it. */
export function describeExposure({
  listen,
  allowHosts,
  httpsCert,
  insecure,
}: Exposing): string | null {
  if (insecure) return null;
  if (!isLocal(listen)) return '`listen` is beyond loopback';
  // Browsers do not send the origin over plain HTTP, and cannot reach a unix socket.
  const isForPages = listen.kind === 'tcp' && httpsCert === null;
  return isForPages && !(allowHosts?.every(isLoopbackName) ?? false)
    ? '`allow_hosts` has names other than loopback, under which web pages could send them'
    : null;
}
