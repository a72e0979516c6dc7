/** With brackets in a URL. */
const LOOPBACK = /^(?:localhost|127(?:\.\d{1,3}){3}|::1|\[::1\])$/;

/** Whether only programs of this machine reach a host. */
export const isLoopback = (host: string): boolean => LOOPBACK.test(host);

/** Whether secrets and keys may be exchanged with this address: over TLS, or without leaving the machine. */
export function isSafeUrl(text: string): boolean {
  if (!URL.canParse(text)) return false;
  const { protocol, hostname, username, password, hash } = new URL(text);
  if (username !== '' || password !== '' || hash !== '') return false;
  return protocol === 'https:' || (protocol === 'http:' && isLoopback(hostname));
}
