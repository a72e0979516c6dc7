/** The case of the commands that one person uses on one machine. The library and the service have no such default. */
export const CASE_DEFAULT = 'case-local';
export const CASE_HELP = `the case whose sandbox the agent works in (default ${CASE_DEFAULT})`;
