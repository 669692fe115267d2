#!/usr/bin/env node
// The command `dbhttpd`: arguments -> start, check, foreground, primary, types, scaffold, new token, help or version. Sets the exit status.
import '../shared/process/ignored-signals.ts';
import { version } from '../shared/process/build.ts';
import { exitCodes } from '../shared/process/exit-codes.ts';
import { escapeControl } from '../shared/process/log.ts';
import { parseArguments } from './arguments.ts';
import { formatHelp, usage } from './help.ts';
import { takeActivation } from './listener/activation.ts';
import { takeNotifySocket } from './readiness.ts';

const command = parseArguments(process.argv.slice(2));
switch (command.kind) {
  case 'help':
    process.stdout.write(formatHelp());
    break;
  case 'version':
    process.stdout.write(`dbhttpd ${version}\n`);
    break;
  case 'new-token': {
    const { describeNewToken } = await import('./new-token.ts');
    process.stdout.write(describeNewToken());
    break;
  }
  case 'misuse':
    process.stderr.write(`dbhttpd: ${command.problem}\n${usage}`);
    process.exitCode = exitCodes.usage;
    break;
  case 'check': {
    process.on('uncaughtException', reportFailure);
    // Loaded only here, because a start does not need the MySQL client.
    const { check } = await import('./check/check.ts');
    process.exitCode = await check(command, command.isJson, process.env);
    break;
  }
  case 'primary': {
    process.on('uncaughtException', reportFailure);
    const { setPrimary } = await import('./set-primary.ts');
    process.exitCode = await setPrimary(command, process.env);
    break;
  }
  case 'types': {
    process.on('uncaughtException', reportFailure);
    const { printTypes } = await import('./generate/types.ts');
    process.exitCode = await printTypes(command, process.env);
    break;
  }
  case 'scaffold': {
    process.on('uncaughtException', reportFailure);
    const { printScaffold } = await import('./generate/scaffold.ts');
    process.exitCode = await printScaffold(command, process.env);
    break;
  }
  case 'foreground': {
    const { runInForeground } = await import('./foreground.ts');
    const activation = takeActivation(process.env, process.pid);
    const notifySocket = takeNotifySocket(process.env);
    const env = { ...process.env };
    // Workers inherit this process's environment, and do not need these.
    delete process.env.DBHTTPD_PASSWORD;
    delete process.env.DBHTTPD_TOKEN;
    process.exit(await runInForeground(command, env, activation, notifySocket));
    break;
  }
  case 'start': {
    // A start prints nothing, neither warnings of the runtime nor exceptions.
    process.removeAllListeners('warning');
    process.on('uncaughtException', () => process.exit(exitCodes.unavailable));
    const activation = takeActivation(process.env, process.pid);
    const { launch } = await import('./launch.ts');
    process.exit(await launch(command, process.env, activation));
    break;
  }
  default:
    command satisfies never;
}

/** A fault of the command itself, in one line instead of a stack trace. */
function reportFailure(error: unknown): void {
  const text = error instanceof Error ? error.message : String(error);
  process.stderr.write(`dbhttpd: the command failed: ${escapeControl(text)}\n`);
  process.exit(exitCodes.unavailable);
}
