// Makes the command in dist/program from the modules in dist/src. The last step of a build.
import { resolve } from 'node:path';
import { joinProgram } from './support/program.ts';

await joinProgram(resolve(import.meta.dirname, '../..'));
