// A key pair for JSON Web Tokens, its JWK set in a file, and tokens that are signed with it.
import { generateKeyPairSync } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type JWTPayload, SignJWT } from 'jose';
import { createWorkspace } from '../../../support/workspace.ts';

export const jwtNames = { jwt_issuer: 'https://login.example', jwt_audience: 'dbhttpd' } as const;

/** A JWK set. The test that created it must remove it. */
export type JwtKeys = {
  readonly path: string;
  /** Signs a token of that user, valid for five minutes. */
  readonly sign: (user: string, claims?: JWTPayload, kid?: string) => Promise<string>;
  /** Writes the file again with another name of the same key. */
  readonly rename: (kid: string) => void;
  readonly remove: () => void;
};

/** Writes a JWK set with one key of the name `first`. */
export function createJwtKeys(): JwtKeys {
  const workspace = createWorkspace('jwks', () => undefined);
  const path = join(workspace.path, 'jwks.json');
  const { publicKey, privateKey } = generateKeyPairSync('ed25519');
  const jwk = publicKey.export({ format: 'jwk' });
  const rename = (kid: string) =>
    writeFileSync(path, JSON.stringify({ keys: [{ ...jwk, alg: 'EdDSA', kid }] }), { mode: 0o600 });
  rename('first');
  return {
    path,
    rename,
    sign: (user, claims = {}, kid = 'first') =>
      new SignJWT(claims)
        .setProtectedHeader({ alg: 'EdDSA', kid, typ: 'at+jwt' })
        .setIssuer(jwtNames.jwt_issuer)
        .setAudience(jwtNames.jwt_audience)
        .setSubject(user)
        .setExpirationTime('5m')
        .sign(privateKey),
    remove: () => workspace.remove(),
  };
}
