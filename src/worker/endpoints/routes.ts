// The table of all that is served: path, methods, who may ask, who answers.
// Must not know how any of them answers.
import type { Caller } from '../../shared/process/calls.ts';
import type { SupervisorCalls } from '../../shared/process/messages.ts';
import { renderDriverFailure } from '../encode/formats/driver-error.ts';
import { renderPlainFailure, renderProblem } from '../encode/formats/problem.ts';
import type { RenderFailure } from '../failure/failure.ts';
import type { Rules } from '../request/compat.ts';
import type { Handler, Route } from '../request/router.ts';
import { type ConsoleFiles, consolePaths, createConsoleFile } from './console.ts';
import type { DriverHandlers } from './planetscale/endpoint.ts';
import { createKill, createTold, requestsPath, type ToldName } from './v1/inside.ts';
import { createOpenapi } from './v1/openapi/endpoint.ts';
import { createHealth, createMetrics, createReadyz, livez, type ReadyAnswer } from './watching.ts';

/** What the endpoints are made of. */
export type Answers = {
  readonly db: Handler;
  readonly query: Handler;
  readonly batch: Handler;
  readonly begin: Handler;
  readonly commit: Handler;
  readonly rollback: Handler;
  /** Null: drivers are not served. */
  readonly drivers: DriverHandlers | null;
  /** Whether this worker can serve what a client needs. */
  readonly askReady: () => Promise<ReadyAnswer>;
  /** Asks what only the supervisor knows. */
  readonly supervisor: Caller<SupervisorCalls>;
  /** What the console is made of; null: there is none. */
  readonly consoleFiles: ConsoleFiles | null;
};

/** Where a transaction is begun; two paths below it end one. */
const transactionPath = '/v1/transaction';

type Line = Omit<Route, 'path' | 'handle'>;

/** Creates the table of one worker. */
export function createRoutes(
  rules: Rules,
  {
    db,
    query,
    batch,
    begin,
    commit,
    rollback,
    drivers,
    askReady,
    supervisor,
    consoleFiles,
  }: Answers,
): readonly Route[] {
  const sql = {
    methods: ['GET', 'POST'],
    access: 'guarded',
    isEssential: false,
    endsConnection: rules.repliesEndConnection,
  } as const;
  const v1 = { ...sql, methods: ['POST'], endsConnection: false };
  const watched = (endpoint: Line['endpoint'], access: Line['access']): Line => {
    const methods = ['GET', 'HEAD'];
    return { endpoint, methods, access, isEssential: true, endsConnection: false };
  };
  const told = (name: ToldName) => ({
    ...watched(`v1_${name}`, 'guarded'),
    path: `/v1/${name}`,
    handle: createTold(supervisor, name),
  });
  const readyz = { ...watched('readyz', 'open'), path: '/readyz', handle: createReadyz(askReady) };
  const health = { ...watched('health', 'open'), path: '/health', handle: createHealth(askReady) };
  return [
    { ...sql, endpoint: 'db', path: '/db', handle: db },
    { ...sql, endpoint: 'db', path: '/db/', handle: db },
    { ...v1, endpoint: 'v1_query', path: '/v1/query', methods: ['POST', 'QUERY'], handle: query },
    {
      ...sql,
      endpoint: 'openapi',
      path: '/openapi.json',
      methods: ['GET', 'HEAD'],
      endsConnection: false,
      handle: createOpenapi(),
    },
    { ...v1, endpoint: 'v1_batch', path: '/v1/batch', handle: batch },
    { ...v1, endpoint: 'v1_transaction', path: transactionPath, handle: begin },
    { ...v1, endpoint: 'v1_transaction', path: `${transactionPath}/commit`, handle: commit },
    { ...v1, endpoint: 'v1_transaction', path: `${transactionPath}/rollback`, handle: rollback },
    { ...watched('livez', 'open'), path: '/livez', handle: livez },
    readyz,
    { ...watched('metrics', 'guarded'), path: '/metrics', handle: createMetrics(supervisor) },
    told('stats'),
    told('requests'),
    told('statements'),
    {
      ...watched('v1_requests', 'guarded'),
      path: `${requestsPath}/*`,
      methods: ['DELETE'],
      handle: createKill(supervisor),
    },
    ...(rules.hasHealth ? [health] : []),
    ...(drivers === null ? [] : driverRoutes(v1, drivers)),
    ...consolePaths(consoleFiles).map(({ path, access, file }) => {
      return { ...watched('console', access), path, handle: createConsoleFile(file) };
    }),
  ];
}

const driverPath = '/psdb.v1alpha1.Database/';

function driverRoutes(
  line: Omit<Line, 'endpoint'>,
  { execute, createSession }: DriverHandlers,
): readonly Route[] {
  const access = 'driver';
  return [
    { ...line, access, endpoint: 'driver_execute', path: `${driverPath}Execute`, handle: execute },
    {
      ...line,
      access,
      endpoint: 'driver_session',
      path: `${driverPath}CreateSession`,
      handle: createSession,
    },
  ];
}

/** How failures are told on a path, whether or not there is anything. */
export function failureFormatOf(path: string): RenderFailure {
  if (path.startsWith(driverPath)) return renderDriverFailure;
  return path === '/v1' || path.startsWith('/v1/') ? renderProblem : renderPlainFailure;
}
