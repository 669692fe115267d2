// A program that begins a transaction with a wrong token: does it go on?
import { PrismaPlanetScale } from '@prisma/adapter-planetscale';
import { PrismaClient } from './generated/client.ts';
import { setting } from './setting.ts';

if (process.argv[2] === 'listen') process.on('unhandledRejection', () => undefined);
const url = setting.gateway.replace(/:[^:@]+@/, ':wrong@');
const prisma = new PrismaClient({ adapter: new PrismaPlanetScale({ url }) });
// Prisma's own timer does not keep a process.
const alive = setInterval(() => undefined, 1000);
const reported = await prisma.$transaction((tx) => tx.customer.count()).catch(({ code }) => code);
clearInterval(alive);
process.stdout.write(`${reported}\n`);
