// Random sessions as a host sends them: numbered events, with the live frames between them.

import type { Frame, HostEvent } from '../src/contract'
import type { Random } from './random'

export type Sent = { event: HostEvent } | { live: Frame }

/** A session of some turns with text, tool calls, cards, agents, queued messages, interrupts and rewinds. */
export function randomSession (random: Random, turns: number): Sent[] {
  const sent: Sent[] = []
  let seq = 0
  let at = 1_000_000
  let ids = 0
  const id = (name: string) => `${name}${++ids}`
  const event = (frame: Frame) => { sent.push({ event: { session: 's', seq: ++seq, at: at += 10 + random.below(500), frame } }) }
  const live = (frame: Frame) => { sent.push({ live: frame }) }
  const prompts: string[] = []

  const stream = (message: string, parent: string | null, content: { type: string, text: string, id?: string, name?: string }) => {
    const send = (inner: object) => live({ type: 'stream_event', parent_tool_use_id: parent, event: inner })
    send({ type: 'message_start', message: { id: message } })
    send({ type: 'content_block_start', index: 0, content_block: { type: content.type, id: content.id, name: content.name, text: '' } })
    const kind = content.type === 'tool_use' ? 'partial_json' : 'text'
    for (const part of content.text.match(/.{1,7}/gs) ?? []) send({ type: 'content_block_delta', index: 0, delta: { [kind]: part } })
    if (random.chance(70)) send({ type: 'content_block_stop', index: 0 })
  }

  const assistant = (parent: string | null, block: object, text: string) => {
    const message = id('m')
    const content = block as { type: string, id?: string, name?: string }
    if (random.chance(60)) stream(message, parent, { ...content, text })
    event({ type: 'assistant', uuid: id('a'), parent_tool_use_id: parent, message: { id: message, content: [block], usage: { input_tokens: 10, output_tokens: 5 } } })
  }

  const tool = (parent: string | null, depth: number) => {
    const call = id('t')
    const name = random.pick(['Bash', 'Read', 'Edit', 'TodoWrite', 'mcp__files__list', depth < 2 ? 'Agent' : 'Grep'])
    const input = { command: 'ls', file_path: '/w/a.txt', todos: [{ content: 'one', status: 'pending', activeForm: 'one' }] }
    if (random.chance(20)) live({ type: 'tool_progress', tool_use_id: call, progress: { done: 1, total: 2, message: 'half' } })
    assistant(parent, { type: 'tool_use', id: call, name, input }, JSON.stringify(input))
    let allowed = true
    if (random.chance(30)) {
      const request = id('r')
      event({ type: 'control_request', request_id: request, request: { subtype: 'can_use_tool', tool_name: name, tool_use_id: call, input } })
      event({ type: 'host', subtype: 'state', state: 'waiting' })
      if (random.chance(80)) {
        allowed = random.chance(70)
        event({ type: 'host', subtype: 'answered', request, decision: allowed ? 'allow' : 'deny', scope: 'once', input_changed: false, by: { id: 'p', name: 'Ann' } })
      } else {
        event({ type: 'control_cancel_request', request_id: request })
      }
      event({ type: 'host', subtype: 'state', state: 'running' })
    }
    if (name === 'Agent') for (let inner = random.below(3); inner > 0; inner--) tool(call, depth + 1)
    if (name === 'Bash') live({ type: 'tool_output', tool_use_id: call, text: 'out\n' })
    event({ type: 'user', uuid: id('u'), parent_tool_use_id: parent, message: { role: 'user', content: [{ type: 'tool_result', tool_use_id: call, content: 'done', is_error: !allowed }] } })
  }

  for (let turn = 0; turn < turns; turn++) {
    const uuid = id('p')
    prompts.push(uuid)
    event({ type: 'host', subtype: 'queued', uuid, content: `prompt ${turn}`, by: { id: 'p', name: 'Ann' } })
    if (random.chance(10)) {
      event({ type: 'host', subtype: 'taken_back', uuid })
      prompts.pop()
      continue
    }
    event({ type: 'host', subtype: 'state', state: 'running' })
    event({ type: 'host', subtype: 'given', uuid, turn: id('turn') })
    event({ type: 'system', subtype: 'init', model: 'm', permissionMode: 'default', slash_commands: ['clear'] })
    event({ type: 'user', uuid, message: { role: 'user', content: `prompt ${turn}` } })
    for (let step = random.below(4); step > 0; step--) tool(null, 0)
    if (random.chance(10)) {
      event({ type: 'host', subtype: 'interrupted', turn: 'x' })
      event({ type: 'host', subtype: 'state', state: 'interrupted' })
      continue
    }
    const text = `answer ${turn} with some more words`
    assistant(null, { type: 'text', text }, text)
    event({ type: 'result', uuid: id('e'), subtype: 'success', result: text, duration_ms: 10, num_turns: 1, total_cost_usd: turn / 100 })
    event({ type: 'host', subtype: 'state', state: 'resting' })
    if (random.chance(10)) event({ type: 'host', subtype: 'rewound', to: random.pick(prompts), files: ['a'], conversation: true, undo: id('undo') })
  }
  return sent
}
