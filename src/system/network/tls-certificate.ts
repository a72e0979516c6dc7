// The certificate of a server, from two PEM files that another program renews.

import { createPrivateKey, X509Certificate } from 'node:crypto';
import { statSync } from 'node:fs';
import { createSecureContext } from 'node:tls';
import { UsageError } from '../../core/errors.js';
import type { Clock } from '../../engine/ports/clock.js';
import type { Log } from '../../engine/ports/log.js';
import { readRegularSync } from '../files/open-file.js';

/** Interval between two looks at the files, in ms. */
const CHECK_MS = 10_000;
const BYTES_MAX = 262_144;

/** The two PEM files. Links are followed: certificate managers replace the target. */
export interface TlsFiles {
  /** The certificate of the server, then those of its issuers. */
  readonly cert: string;
  readonly key: string;
}

/** A certificate and its key, checked to belong together. */
export interface TlsCredentials {
  readonly cert: Buffer;
  readonly key: Buffer;
  /** The end of its validity, in ms since 1970. */
  readonly expiresAt: number;
}

/** Keeps the credentials of a server up to date with the files. */
export class TlsCertificate {
  readonly #files: TlsFiles;
  readonly #clock: Clock;
  readonly #log: Log;
  #credentials: TlsCredentials;
  #version: string;
  #cancelTimer: (() => void) | null = null;
  #listener: (credentials: TlsCredentials) => void = () => undefined;

  /** @throws UsageError for files that cannot be read or do not belong together */
  constructor(files: TlsFiles, clock: Clock, log: Log) {
    [this.#files, this.#clock, this.#log] = [files, clock, log];
    this.#version = versionOf(files);
    this.#credentials = readTlsFiles(files);
  }

  get credentials(): TlsCredentials {
    return this.#credentials;
  }

  /** Whether the certificate can be used now. Clients reject it otherwise. */
  get isExpired(): boolean {
    return this.#clock.now() >= this.#credentials.expiresAt;
  }

  /** Looks at the files from now on, and calls `listener` with new credentials. */
  watch(listener: (credentials: TlsCredentials) => void): void {
    this.#listener = listener;
    this.#cancelTimer = this.#clock.wake(this.#clock.now() + CHECK_MS, () => {
      this.reload();
      this.watch(listener);
    });
  }

  /** Reads the files again if they have changed. Files that are wrong are logged, and the old credentials stay. */
  reload(): void {
    try {
      const version = versionOf(this.#files);
      if (version === this.#version) return;
      const credentials = readTlsFiles(this.#files);
      [this.#version, this.#credentials] = [version, credentials];
      this.#listener(credentials);
      this.#log.info('the TLS certificate was replaced', { expires: new Date(credentials.expiresAt).toISOString() });
    } catch (error) {
      this.#log.error('the TLS certificate cannot be reloaded: the previous one stays in use', { error });
    }
  }

  close(): void {
    this.#cancelTimer?.();
  }
}

/** @throws UsageError that names the file and what is wrong */
export function readTlsFiles({ cert, key }: TlsFiles): TlsCredentials {
  const certBytes = attempt(`${cert} cannot be read`, () => readRegularSync(cert, BYTES_MAX));
  const keyBytes = attempt(`${key} cannot be read`, () => readRegularSync(key, BYTES_MAX));
  const certificate = attempt(`${cert} is not a PEM certificate`, () => new X509Certificate(certBytes));
  const privateKey = attempt(`${key} is not a PEM private key without a passphrase`, () => createPrivateKey(keyBytes));
  if (!certificate.checkPrivateKey(privateKey)) throw tlsError(`${key} is not the key of the certificate in ${cert}`);
  attempt(`${cert} or ${key} cannot be used for TLS`, () => createSecureContext({ cert: certBytes, key: keyBytes }));
  return { cert: certBytes, key: keyBytes, expiresAt: Date.parse(certificate.validTo) };
}

/** Changes whenever one of the files changes or is replaced. Empty if one does not exist for a moment. */
function versionOf({ cert, key }: TlsFiles): string {
  return [cert, key]
    .map((path) => statSync(path, { throwIfNoEntry: false, bigint: true }))
    .map((stat) => (stat === undefined ? '' : `${stat.ino}:${stat.mtimeNs}:${stat.size}`))
    .join(' ');
}

function attempt<T>(message: string, work: () => T): T {
  try {
    return work();
  } catch (cause) {
    throw tlsError(message, cause);
  }
}

const tlsError = (message: string, cause?: unknown): UsageError =>
  new UsageError({ code: 'USAGE', message: `TLS: ${message}`, cause });
