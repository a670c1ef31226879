// The adapter of the OpenAI Agents SDK for JavaScript: the run's state is serialized when a call waits for approval, and
// read back to go on (https://openai.github.io/openai-agents-js/guides/human-in-the-loop/).
//
// usage: node adapter.mjs STEP DIR URL
import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Agent, RunState, Runner, Usage, tool } from '@openai/agents';

const [step, dir, url] = process.argv.slice(2);
const paused = join(dir, 'paused');
const result = join(dir, 'result');

// save writes a file whole or not at all.
function save(name, text) {
  writeFileSync(name + '.new', text);
  renameSync(name + '.new', name);
}

async function ask(path, body) {
  const res = await fetch(url + path, { method: 'POST', body: JSON.stringify(body) });
  return res.json();
}

function say(state, text = '') {
  console.log(JSON.stringify({ state, text }));
}

// model asks the harness.
const model = {
  async getResponse(request) {
    const items = Array.isArray(request.input) ? request.input : [];
    const outputs = items.filter((it) => it.type === 'function_call_result').map((it) => JSON.stringify(it.output));
    const r = await ask('/model', { outputs });
    const output = r.call
      ? [{ type: 'function_call', callId: r.call, name: 'pay', arguments: '{"cents":5}', status: 'completed' }]
      : [{ type: 'message', role: 'assistant', status: 'completed', content: [{ type: 'output_text', text: r.text }] }];
    return { usage: new Usage(), output };
  },
};

const pay = tool({
  name: 'pay',
  description: 'Pays the customer.',
  parameters: { type: 'object', properties: { cents: { type: 'integer' } }, required: ['cents'], additionalProperties: false },
  needsApproval: true,
  execute: async (_input, _context, details) => (await ask('/pay', { key: details?.toolCall?.callId ?? '' })).text,
});

const agent = new Agent({ name: 'Payer', instructions: 'Pay.', model, tools: [pay] });
const runner = new Runner({ tracingDisabled: true });

async function main() {
  if (existsSync(result)) return say('finished', readFileSync(result, 'utf8'));
  let res;
  if (!existsSync(paused)) {
    res = await runner.run(agent, 'Pay the customer.');
  } else {
    if (step === 'start') return say('waiting');
    const state = await RunState.fromString(agent, readFileSync(paused, 'utf8'));
    for (const interruption of state.getInterruptions()) state.approve(interruption);
    save(paused, state.toString());
    res = await runner.run(agent, state);
  }
  if (res.interruptions.length > 0) {
    save(paused, res.state.toString());
    await ask('/paused', {});
    return say('waiting');
  }
  await ask('/finished', {});
  save(result, res.finalOutput);
  say('finished', res.finalOutput);
}

await main();
