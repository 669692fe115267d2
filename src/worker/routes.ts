// The table of routes: path, methods, access, permission, endpoint.
import { homepage } from '../shared/process/build.ts';
import type { Caller } from '../shared/process/calls.ts';
import type { SupervisorCalls } from '../shared/process/messages.ts';
import { renderDriverFailure } from './encode/formats/driver-error.ts';
import { renderPlainFailure, renderProblem, renderRpcFailure } from './encode/formats/problem.ts';
import { type ConsoleFiles, consolePaths, createConsoleFile } from './endpoints/console.ts';
import type { Handler, Need, PlainEndpoint, Route, SqlEndpoint } from './endpoints/endpoint.ts';
import type { NamedStatements } from './endpoints/named/statements.ts';
import type { DriverEndpoints } from './endpoints/planetscale/endpoint.ts';
import { createRoot } from './endpoints/root.ts';
import { tablesPath } from './endpoints/tables/endpoint.ts';
import { createNamedList, namedPath } from './endpoints/v1/named.ts';
import { createOpenapi } from './endpoints/v1/openapi/document.ts';
import {
  createHealth,
  createKill,
  createMetrics,
  createReadyz,
  createRequestList,
  createStatementList,
  createStats,
  livez,
  type ReadyAnswer,
  requestsPath,
} from './endpoints/watching.ts';
import { createDocument, type ProtectedResource, wellKnownPrefix } from './endpoints/well-known.ts';
import type { RenderFailure } from './failure/failure.ts';
import type { Rules } from './request/compat.ts';

/** The parts of the endpoints. */
export type Answers = {
  readonly db: SqlEndpoint;
  readonly query: SqlEndpoint;
  readonly batch: SqlEndpoint;
  readonly named: SqlEndpoint;
  readonly statements: NamedStatements;
  readonly tables: SqlEndpoint;
  readonly begin: SqlEndpoint;
  readonly commit: SqlEndpoint;
  readonly rollback: SqlEndpoint;
  /** Null: agents are not served. */
  readonly mcp: McpAnswers | null;
  /** Null: drivers are not served. */
  readonly drivers: DriverEndpoints | null;
  /** Whether this worker can serve what a client needs. */
  readonly askReady: () => Promise<ReadyAnswer>;
  /** Asks what only the supervisor knows. */
  readonly supervisor: Caller<SupervisorCalls>;
  /** The files of the console; null: there is none. */
  readonly consoleFiles: ConsoleFiles | null;
};

/** The path that begins a transaction. Two paths below it end one. */
const transactionPath = '/v1/transaction';

/** The Model Context Protocol's. */
export const mcpPath = '/mcp';

/** The parts of the endpoint for agents. */
export type McpAnswers = {
  readonly endpoint: SqlEndpoint;
  /** Null: tokens are static, and nothing says where to get one. */
  readonly resource: ProtectedResource | null;
};

type Line = Omit<Route, 'path' | 'endpoint'>;

/** Creates the table of one worker. */
export function createRoutes(
  rules: Rules,
  {
    db,
    query,
    batch,
    named,
    statements,
    tables,
    begin,
    commit,
    rollback,
    mcp,
    drivers,
    askReady,
    supervisor,
    consoleFiles,
  }: Answers,
): readonly Route[] {
  const sql = {
    methods: ['GET', 'POST'],
    access: 'guarded',
    needs: 'sql',
    isEssential: false,
    endsConnection: rules.repliesEndConnection,
  } as const;
  const v1 = { ...sql, methods: ['POST'], endsConnection: false };
  const held = { ...v1, needs: 'transaction' } as const;
  const watched = (name: Line['name'], access: Line['access'], needs: Need): Line => {
    const methods = ['GET', 'HEAD'];
    return { name, methods, access, needs, isEssential: true, endsConnection: false };
  };
  const report = (name: 'stats' | 'statements', handle: Handler): Route => ({
    ...watched(`v1_${name}`, 'guarded', 'observe'),
    path: `/v1/${name}`,
    endpoint: plain(handle),
  });
  const readyz = {
    ...watched('readyz', 'open', 'nothing'),
    path: '/readyz',
    endpoint: plain(createReadyz(askReady)),
  };
  const health = {
    ...watched('health', 'open', 'nothing'),
    path: '/health',
    endpoint: plain(createHealth(askReady)),
  };
  const root = {
    ...watched('root', 'open', 'nothing'),
    path: '/',
    isEssential: false,
    endpoint: plain(createRoot(consoleFiles !== null, homepage)),
  };
  return [
    root,
    { ...sql, name: 'db', path: '/db', endpoint: db },
    { ...sql, name: 'db', path: '/db/', endpoint: db },
    { ...v1, name: 'v1_query', path: '/v1/query', methods: ['POST', 'QUERY'], endpoint: query },
    {
      ...sql,
      name: 'openapi',
      path: '/openapi.json',
      methods: ['GET', 'HEAD'],
      needs: 'any client',
      endsConnection: false,
      endpoint: plain(createOpenapi(statements)),
    },
    { ...v1, name: 'v1_batch', path: '/v1/batch', needs: 'batch', endpoint: batch },
    {
      ...v1,
      name: 'v1_named',
      path: namedPath,
      methods: ['GET', 'HEAD'],
      needs: 'named',
      endpoint: plain(createNamedList(statements)),
    },
    {
      ...v1,
      name: 'v1_named',
      path: `${namedPath}/*`,
      methods: ['GET', 'HEAD', 'POST'],
      needs: 'named',
      endpoint: named,
    },
    ...[tablesPath, `${tablesPath}/*`].map(
      (path): Route => ({ ...v1, name: 'v1_tables', path, methods: ['GET'], endpoint: tables }),
    ),
    { ...held, name: 'v1_transaction', path: transactionPath, endpoint: begin },
    { ...held, name: 'v1_transaction', path: `${transactionPath}/commit`, endpoint: commit },
    { ...held, name: 'v1_transaction', path: `${transactionPath}/rollback`, endpoint: rollback },
    { ...watched('livez', 'open', 'nothing'), path: '/livez', endpoint: plain(livez) },
    readyz,
    {
      ...watched('metrics', 'guarded', 'metrics'),
      path: '/metrics',
      endpoint: plain(createMetrics(supervisor)),
    },
    report('stats', createStats(supervisor)),
    // Without the permission `observe` a client sees only its own.
    {
      ...watched('v1_requests', 'guarded', 'any client'),
      path: requestsPath,
      endpoint: plain(createRequestList(supervisor)),
    },
    report(
      'statements',
      createStatementList(supervisor, () => statements.all),
    ),
    {
      // Without the permission `kill` a client ends only its own.
      ...watched('v1_requests', 'guarded', 'any client'),
      path: `${requestsPath}/*`,
      methods: ['DELETE'],
      endpoint: plain(createKill(supervisor)),
    },
    ...(rules.hasHealth ? [health] : []),
    ...(mcp === null ? [] : mcpRoutes(v1, mcp)),
    ...(drivers === null ? [] : driverRoutes(v1, drivers)),
    ...consolePaths(consoleFiles).map(({ path, access, file }) => {
      return {
        ...watched('console', access, 'nothing'),
        path,
        endpoint: plain(createConsoleFile(file)),
      };
    }),
  ];
}

function plain(handle: Handler): PlainEndpoint {
  return { kind: 'plain', handle };
}

function mcpRoutes(line: Omit<Line, 'name'>, { endpoint, resource }: McpAnswers): readonly Route[] {
  const challenge = resource === null ? {} : { challenge: resource.challenge };
  const documents = (resource?.documents ?? []).map(
    (document): Route => ({
      ...line,
      name: 'well_known',
      path: document.path,
      methods: ['GET', 'HEAD'],
      access: 'file',
      needs: 'nothing',
      endpoint: plain(createDocument(document)),
    }),
  );
  return [
    { ...line, ...challenge, needs: 'mcp', name: 'mcp', path: mcpPath, endpoint },
    ...documents,
  ];
}

const driverPath = '/psdb.v1alpha1.Database/';

function driverRoutes(
  line: Omit<Line, 'name'>,
  { execute, createSession }: DriverEndpoints,
): readonly Route[] {
  const access = 'driver';
  const needs = 'drivers';
  return [
    {
      ...line,
      access,
      needs,
      name: 'driver_execute',
      path: `${driverPath}Execute`,
      endpoint: execute,
    },
    {
      ...line,
      access,
      needs,
      name: 'driver_session',
      path: `${driverPath}CreateSession`,
      endpoint: createSession,
    },
  ];
}

/** Finds the line of a path. Whole paths are looked up; only others are compared with each family. */
export function createRouteFinder(routes: readonly Route[]): (path: string) => Route | undefined {
  const whole = new Map(routes.map((route) => [route.path, route]));
  const families = routes.filter(({ path }) => path.endsWith('/*'));
  const isOf = (path: string, family: string) => {
    const parent = family.slice(0, -1);
    return (
      path.startsWith(parent) && path.length > parent.length && !path.includes('/', parent.length)
    );
  };
  return (path) => whole.get(path) ?? families.find((route) => isOf(path, route.path));
}

/** The checks for a path at which there is nothing. */
export function accessElsewhere(path: string): Route['access'] {
  return path.startsWith(wellKnownPrefix) ? 'file' : 'guarded';
}

/** The format of failures on a path, also on one that does not exist. */
export function failureFormatOf(path: string): RenderFailure {
  if (path.startsWith(driverPath)) return renderDriverFailure;
  if (path === mcpPath) return renderRpcFailure;
  return path === '/v1' || path.startsWith('/v1/') ? renderProblem : renderPlainFailure;
}
