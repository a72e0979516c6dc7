// node hook-command.mjs CLIENT: sends the event on standard input to the gate of `dialect-gate.mjs`, and gives the
// client the reply. It fails closed: without a reply in time, it ends with 2 and says why.

const HOOK_MS = Number(process.env.HOOK_MS ?? 5_000);

try {
  const parts = [];
  for await (const part of process.stdin) parts.push(part);
  const event = JSON.parse(Buffer.concat(parts).toString());
  if (process.env.MAY_DEFER === '1') event.turnpike_may_defer = true;
  const response = await fetch(`http://127.0.0.1:9322/${process.argv[2]}`, {
    method: 'POST',
    body: JSON.stringify(event),
    signal: AbortSignal.timeout(HOOK_MS),
  });
  const { body, exit, stderr } = await response.json();
  if (body !== null) process.stdout.write(JSON.stringify(body));
  process.stderr.write(stderr);
  process.exitCode = exit;
} catch (error) {
  const reason = `Turnpike: no decision, so the call is denied (${error.message})`;
  if (process.argv[2] === 'cline') process.stdout.write(JSON.stringify({ cancel: true, errorMessage: reason }));
  process.stderr.write(`${reason}\n`);
  process.exitCode = process.argv[2] === 'cline' ? 0 : 2;
}
