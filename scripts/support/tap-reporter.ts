// A reporter for Node's test runner: TAP that names the failed tests once more before the closing counts, so that the end of a long log
// shows them.
import { relative } from 'node:path';
import { type TestEvent, tap } from 'node:test/reporters';

type Events = AsyncGenerator<TestEvent, void>;

/** The events of Node's runner, as TAP. */
// biome-ignore lint/style/noDefaultExport: Node loads reporters by their default export
export default async function* report(source: Events): AsyncGenerator<string> {
  yield* tap(withFailuresAtEnd(source));
}

async function* withFailuresAtEnd(source: Events): Events {
  const failures: string[] = [];
  let isReported = false;
  for await (const event of source) {
    if (event.type === 'test:fail') failures.push(describe(event.data));
    if (event.type === 'test:diagnostic' && /^tests \d+$/.test(event.data.message) && !isReported) {
      isReported = true;
      for (const message of failures) yield { ...event, data: { ...event.data, message } };
    }
    yield event;
  }
}

/** One line about a test, with the first line of its error. */
function describe({
  name,
  file,
  details,
}: Extract<TestEvent, { type: 'test:fail' }>['data']): string {
  const { cause, message } = details.error;
  const said = cause instanceof Error ? cause.message : String(cause ?? message);
  const where = file === undefined ? '' : ` (${relative(process.cwd(), file)})`;
  return `failed: ${name}${where}: ${said.split('\n', 1)[0]}`;
}
