import type { Log } from '../../engine/ports/log.js';

type Fields = Readonly<Record<string, unknown>>;

/** `log`, with the trace id of the run or tree that a line names. */
export function tracedLog(log: Log, traceIdOf: (run_id: string) => string): Log {
  const withTrace = (fields: Fields | undefined): Fields | undefined => {
    const run_id = fields?.['run_id'] ?? fields?.['tree_id'];
    return typeof run_id === 'string' ? { ...fields, trace_id: traceIdOf(run_id) } : fields;
  };
  return {
    info: (message, fields) => log.info(message, withTrace(fields)),
    warn: (message, fields) => log.warn(message, withTrace(fields)),
    error: (message, fields) => log.error(message, withTrace(fields)),
  };
}
