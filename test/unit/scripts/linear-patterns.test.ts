// Every regular expression of the sources takes linear time on any text: no client can block a worker with a text that one of them reads.
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { checkSync } from 'recheck';
import ts from 'typescript-5.9';

type Literal = { readonly path: string; readonly source: string; readonly flags: string };

/** Expressions that are not judged, by file and source, each with the reason why its text cannot be long and hostile. */
const exempt: Readonly<Record<string, string>> = {
  'src/client/client.ts: \\/+$': 'reads the URL that the program configures',
  'src/shared/config/certificates.ts: -----BEGIN ([A-Z0-9 ]*)CERTIFICATE-----[\\s\\S]*?-----END \\1CERTIFICATE-----':
    "reads the operator's files",
  'src/shared/named/file-items.ts: ^[ \\t]*(?=--[ \\t]*name[ \\t]*:)': "reads the operator's files",
  'src/shared/named/type-reader.ts: .*?(?=\\/\\s*,\\s*\\d+\\s*\\))': "reads the operator's files",
  'src/shared/process/socket-tables.ts: ^(?:\\S+ +){6}(\\d+) (.+)$':
    "reads the kernel's table, where a path has at most 108 bytes",
  'src/shared/server-keys.ts: -----BEGIN (RSA )?PUBLIC KEY-----[\\s\\S]*?-----END \\1?PUBLIC KEY-----':
    "reads the operator's files",
  'src/shared/servers/gtid-sets.ts: ^(\\d{1,20})(?:-(\\d{1,20}))?(?:#\\d+)?$':
    'has one loop, behind at most 41 characters',
  'src/supervisor/listener/activation.ts: ^\\w+: \\w+ \\w+ (\\w+) (\\w+) \\w+ +(\\d+) ?(.*)$':
    "reads the kernel's table, where a path has at most 108 bytes",
  'src/supervisor/workers/commit-memory.ts: ^([0-9a-f]{16}) (\\d+) (committed|unknown|partial|unproven|over|forgotten)$':
    "reads the gateway's own file, and takes long to judge",
  'src/worker/endpoints/mcp/named-tools.ts: ^insert\\b(?!.*\\bon\\s+duplicate\\b)':
    "reads the operator's files",
  'src/worker/http/limits.ts: ^Max open files\\s+(\\d+)':
    "reads the kernel's table, and takes long to judge",
};

/** Files that build expressions, and how many. */
const built: Readonly<Record<string, number>> = {
  // A sticky copy of a literal.
  'src/worker/endpoints/json-pieces.ts': 1,
  // Only to see whether it compiles: nothing is matched with it.
  'src/shared/named/parameter-schema.ts': 1,
};

const sources = readdirSync('src', { withFileTypes: true, recursive: true })
  .filter((entry) => entry.isFile() && entry.name.endsWith('.ts'))
  .map(({ parentPath, name }) => join(parentPath, name))
  .sort();

function* walk(node: ts.Node): Generator<ts.Node> {
  yield node;
  const children: ts.Node[] = [];
  ts.forEachChild(node, (child) => {
    children.push(child);
  });
  for (const child of children) yield* walk(child);
}

const nodes = sources.map((path) => {
  const text = readFileSync(path, 'utf8');
  const file = ts.createSourceFile(path, text, ts.ScriptTarget.ESNext, true);
  return { path, nodes: [...walk(file)] };
});

const literals: readonly Literal[] = nodes.flatMap(({ path, nodes: all }) =>
  all.filter(ts.isRegularExpressionLiteral).map(({ text }) => {
    const end = text.lastIndexOf('/');
    return { path, source: text.slice(1, end), flags: text.slice(end + 1) };
  }),
);

function nameOf({ path, source }: Literal): string {
  return `${path}: ${source}`;
}

function isBuilding(node: ts.Node): boolean {
  const isCall = ts.isNewExpression(node) || ts.isCallExpression(node);
  return isCall && ts.isIdentifier(node.expression) && node.expression.text === 'RegExp';
}

/** Without one, an expression reads a bounded part of the text from each position. */
const loop = /[*+]|\{\d+,\}/;

/**
 * The judgement of one expression. The automaton's is exact, and depends neither on the machine's speed nor on chance. It knows no
 * backreferences and no lookarounds, and takes minutes for a few expressions (\w+ \w+ \w+ …): write those in another way, or exempt them.
 */
function judge({ source, flags }: Literal): string {
  const verdict = checkSync(source, flags, { checker: 'automaton', timeout: null });
  if (verdict.status === 'safe') return 'linear';
  return verdict.status === 'vulnerable' ? verdict.complexity.summary : verdict.error.kind;
}

test('every regular expression takes linear time', () => {
  // The package's own JavaScript, in this process. Its other programs need Java or are made for few systems.
  process.env.RECHECK_BACKEND = 'pure';
  assert.ok(literals.length > 200, `${literals.length} expressions`);
  const judged = literals.filter((one) => loop.test(one.source) && !(nameOf(one) in exempt));
  const found = judged.map((one) => `${nameOf(one)}: ${judge(one)}`);
  assert.deepEqual(
    found.filter((line) => !line.endsWith(': linear')),
    [],
  );
});

test('the exempt expressions are still there', () => {
  const names = new Set(literals.map(nameOf));
  assert.deepEqual(
    Object.keys(exempt).filter((name) => !names.has(name)),
    [],
  );
});

test('code builds no further expressions', () => {
  const found = nodes.flatMap(({ path, nodes: all }) => {
    const count = all.filter(isBuilding).length;
    return count > 0 ? [[path, count] as const] : [];
  });
  const expected = Object.entries(built).sort(([a], [b]) => (a < b ? -1 : 1));
  assert.deepEqual(
    found.sort(([a], [b]) => (a < b ? -1 : 1)),
    expected,
  );
});
