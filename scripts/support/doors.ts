// The paths of the gateway and the permission that each needs, as a Markdown table made from the table of routes.
import type { Need, Route } from '../../src/worker/endpoints/endpoint.ts';
import { rulesOf } from '../../src/worker/request/compat.ts';
import { createRoutes } from '../../src/worker/routes.ts';

/** A Markdown table of every path: methods and permission. */
export function describeDoors(): string {
  const rows = listRoutes().map(
    ({ path, methods, needs }) =>
      `| \`${path.replace('*', '<id>')}\` | ${methods.join(', ')} | ${describeNeed(needs)} |`,
  );
  return ['| path | methods | permission |', '|---|---|---|', ...rows].join('\n');
}

function describeNeed(needs: Need): string {
  if (needs === 'nothing') return 'none, also without a client';
  return needs === 'any client' ? 'any client' : `\`${needs}\``;
}

/** The table of a worker that serves all paths of today. Its endpoints are never called. */
function listRoutes(): readonly Route[] {
  const never = () => {
    throw new Error('no request is made');
  };
  const endpoint = { kind: 'sql', check: never, decide: never } as const;
  return createRoutes(rulesOf.off, {
    ...{ db: endpoint, query: endpoint, batch: endpoint, named: endpoint, tables: endpoint },
    statements: { list: never } as never,
    ...{ begin: endpoint, commit: endpoint, rollback: endpoint },
    mcp: { endpoint, resource: null },
    drivers: { execute: endpoint, createSession: endpoint },
    askReady: never,
    supervisor: { ask: never } as never,
    consoleFiles: new Map([['index.html', '']]),
  });
}
