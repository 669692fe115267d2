// Writes the package's descriptions for other programs: dist/openapi.json and dist/configuration.schema.json.
import { writeFileSync } from 'node:fs';
import { describeV1 } from '../src/worker/endpoints/v1/openapi/document.ts';
import { describeConfiguration } from './support/configuration-schema.ts';

const descriptions = {
  'openapi.json': describeV1(),
  'configuration.schema.json': describeConfiguration(),
};
for (const [name, description] of Object.entries(descriptions)) {
  writeFileSync(new URL(`../${name}`, import.meta.url), `${JSON.stringify(description)}\n`);
}
