// A certificate authority of the test's own, made with the openssl command.

import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

export interface Pair {
  key: string;
  cert: string;
}

export interface Authority {
  folder: string;
  caFile: string;
  ca: string;
  /** A key and certificate signed by this authority; also in `<name>.key` and `<name>.pem` of the folder. */
  issue(name: string, altName: string): Pair;
  remove(): void;
}

export function createAuthority(): Authority {
  const folder = mkdtempSync(join(tmpdir(), 'taskferry-tls-'));
  const caFile = join(folder, 'ca.pem');
  const openssl = (...args: string[]): void => {
    try {
      execFileSync('openssl', args, { cwd: folder, stdio: 'pipe' });
    } catch (error) {
      throw new Error(
        `this test needs the openssl command (Debian: apt-get install openssl): ${String(error)}`,
      );
    }
  };
  const newKey = (name: string): string[] => ['-newkey', 'rsa:2048', '-nodes', '-keyout', `${name}.key`];

  openssl(
    ...['req', '-x509', ...newKey('ca'), '-out', 'ca.pem', '-days', '2', '-subj', '/CN=Test CA'],
    ...['-addext', 'basicConstraints=critical,CA:TRUE', '-addext', 'keyUsage=critical,keyCertSign'],
  );
  return {
    folder,
    caFile,
    ca: readFileSync(caFile, 'utf8'),
    issue(name, altName) {
      const extensions = join(folder, `${name}.ext`);
      writeFileSync(extensions, `subjectAltName=${altName}\n`);
      openssl('req', ...newKey(name), '-out', `${name}.csr`, '-subj', `/CN=${name}`);
      openssl(
        ...['x509', '-req', '-in', `${name}.csr`, '-CA', 'ca.pem', '-CAkey', 'ca.key', '-CAcreateserial'],
        ...['-days', '2', '-out', `${name}.pem`, '-extfile', extensions],
      );
      return {
        key: readFileSync(join(folder, `${name}.key`), 'utf8'),
        cert: readFileSync(join(folder, `${name}.pem`), 'utf8'),
      };
    },
    remove: () => rmSync(folder, { recursive: true, force: true }),
  };
}
