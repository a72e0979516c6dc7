import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { Bench } from '../fixtures/bench.js';

let bench: Bench;
beforeEach(async () => {
  bench = await Bench.open();
});
afterEach(() => bench.close());

// The three examples of S0 as printed there. The order of keys matters, so the texts are compared.

test('S0-74 S0-72 S0-06: example 1, an existing file, gets exactly the response of the contract', async () => {
  bench.put('config/settings.txt', 'file content here...');
  const agent = await bench.turnpike.startAgent();
  const response = await agent.respond(`{
  "schema_version": "1.0.0",
  "id": "550e8400-e29b-41d4-a716-446655440000",
  "reasoning": "Need to read a configuration file to proceed.",
  "action": "READ_FILE",
  "args": {
    "path": "/sandbox/config/settings.txt"
  }
}`);
  expect(JSON.stringify(JSON.parse(response), null, 2)).toBe(`{
  "proposal_id": "550e8400-e29b-41d4-a716-446655440000",
  "action": "READ_FILE",
  "outcome": "SUCCESS",
  "result": {
    "content": "file content here..."
  },
  "error": null
}`);
});

test('S0-75 S0-26 S0-25: example 2, malformed JSON, gets exactly the response of the contract', async () => {
  const agent = await bench.turnpike.startAgent();
  expect(JSON.stringify(JSON.parse(await agent.respond('{ invalid json }')), null, 2)).toBe(`{
  "proposal_id": null,
  "action": null,
  "outcome": "VALIDATION_ERROR",
  "result": null,
  "error": {
    "error_code": "INVALID_JSON",
    "message": "Invalid JSON format"
  }
}`);
});

test('S0-76 S2-25 S0-55: example 3, a missing file, gets exactly the response of the contract', async () => {
  const agent = await bench.turnpike.startAgent();
  const response = await agent.respond(`{
  "schema_version": "1.0.0",
  "id": "550e8400-e29b-41d4-a716-446655440000",
  "reasoning": "Need to read a configuration file to proceed.",
  "action": "READ_FILE",
  "args": {
    "path": "/sandbox/nonexistent.txt"
  }
}`);
  expect(JSON.stringify(JSON.parse(response), null, 2)).toBe(`{
  "proposal_id": "550e8400-e29b-41d4-a716-446655440000",
  "action": "READ_FILE",
  "outcome": "EXECUTION_ERROR",
  "result": null,
  "error": {
    "error_code": "EXECUTION_ERROR",
    "message": "File not found"
  }
}`);
});
