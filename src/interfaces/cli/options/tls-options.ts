import type { TlsFiles } from '../../../system/network/tls-certificate.js';
import { usageError } from '../../../core/errors.js';
import { resolve } from 'node:path';
import type { CommandArguments, CommandOption } from '../command.js';
import type { Io } from '../io.js';

/** How other machines and pages reach a service safely: by which names, with a certificate of its own, or a proxy. */
export const NETWORK_OPTIONS: readonly CommandOption[] = [
  { name: 'allow-host', value: 'HOST', multiple: true, help: 'accept this Host header too; may be repeated' },
  {
    name: 'allow-origin',
    value: 'URL',
    multiple: true,
    help: 'accept requests of pages from this origin; may be repeated',
  },
  { name: 'tls-cert', value: 'FILE', help: 'serve HTTPS with this PEM certificate; read again when the file changes' },
  { name: 'tls-key', value: 'FILE', help: 'the PEM key of the certificate' },
  {
    name: 'trusted-proxy',
    value: 'ADDRESS',
    multiple: true,
    help: 'believe X-Forwarded-For of this address or network (10.0.0.0/8); may be repeated',
  },
];

export interface ParsedTlsOptions {
  readonly tls: TlsFiles | null;
  readonly trustedProxies: readonly string[];
}

/** @throws UsageError if only one of the two files is named */
export function parseTlsOptions(args: CommandArguments, io: Io): ParsedTlsOptions {
  const [cert, key] = [args.text('tls-cert'), args.text('tls-key')];
  const trustedProxies = args.list('trusted-proxy');
  if (cert === undefined && key === undefined) return { tls: null, trustedProxies };
  if (cert === undefined || key === undefined) throw usageError('--tls-cert and --tls-key belong together: name both');
  return { tls: { cert: resolve(io.cwd, cert), key: resolve(io.cwd, key) }, trustedProxies };
}
