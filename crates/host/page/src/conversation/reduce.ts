// The reducer: events and live frames to the state of a session. It is pure; twice the same event, a missing beginning and
// deltas in odd order leave a sane state.

import type { Frame, HostEvent } from '../contract'
import { applyHost, closeCards } from './host_events'
import { applyLive, dropLive } from './live'
import { applyCard, cancelCard } from './cards'
import { applyAssistant, applyUser } from './messages'
import { applySystem } from './system'
import { copyConversation, type Conversation } from './state'
import { pushNotice } from './items'

export type Input = { event: HostEvent } | { live: Frame } | { resync: true }

/** Applies inputs in order and returns the new state. */
export function reduce (state: Conversation, inputs: Input[]): Conversation {
  const next = copyConversation(state)
  for (const input of inputs) apply(next, input)
  return next
}

function apply (state: Conversation, input: Input) {
  if ('resync' in input) state.live.clear()
  else if ('live' in input) applyLive(state, input.live)
  else applyEvent(state, input.event)
}

function applyEvent (state: Conversation, event: HostEvent) {
  if (state.last !== 0 && event.seq <= state.last) return
  if (state.last !== 0 && event.seq > state.last + 1) {
    state.gap = true
    return
  }
  state.gap = false
  if (state.first === 0) {
    state.first = event.seq
    state.firstAt = event.at
  }
  state.last = event.seq
  const frame = event.frame
  switch (frame.type) {
    case 'host': return applyHost(state, event)
    case 'system': return applySystem(state, event)
    case 'user': return applyUser(state, event)
    case 'assistant': return applyAssistant(state, event)
    case 'control_request': return applyCard(state, event)
    case 'control_cancel_request': return cancelCard(state, String(frame.request_id), 'withdrawn', event.at)
    case 'result': return applyResult(state, event)
  }
}

function applyResult (state: Conversation, { seq, at, frame }: HostEvent) {
  dropLive(state, null)
  closeCards(state, 'withdrawn', at)
  state.status = null
  const total = Number(frame.total_cost_usd ?? 0)
  const usage = Object.values((frame.modelUsage ?? {}) as Record<string, { contextWindow?: number }>)
  for (const { contextWindow } of usage) if (contextWindow) state.contextWindow = contextWindow
  const errors = Array.isArray(frame.errors) ? frame.errors.map(String) : []
  const text = typeof frame.result === 'string' ? frame.result : ''
  if (frame.subtype !== 'success' || frame.is_error) {
    const reason = errors.join('\n') || text || RESULT_ERRORS[String(frame.subtype)] || 'The turn failed.'
    const stopped = String(frame.terminal_reason ?? '').startsWith('aborted')
    pushNotice(state, `result:${seq}`, stopped ? 'info' : 'error', stopped ? 'Stopped.' : reason)
  } else if (text && !hasAnswer(state)) {
    state.items.push({ kind: 'text', key: `result:${seq}`, uuid: frame.uuid ?? '', text, streaming: false, at, dropped: false })
  }
  for (const tool of state.tools.values()) {
    if (tool.state !== 'preparing' && tool.state !== 'running') continue
    if ([...state.tasks.values()].some(task => task.status === 'running' && (task.toolUseId === tool.id || task.toolUseId === tool.parent))) continue
    state.tools.set(tool.id, { ...tool, state: 'stopped', endedAt: at })
  }
  const costUsd = Math.max(0, total - state.costUsd)
  state.costUsd = total
  state.items.push({ kind: 'turn_end', key: `end:${seq}`, durationMs: Number(frame.duration_ms ?? 0), costUsd, turns: Number(frame.num_turns ?? 0), dropped: false })
}

const RESULT_ERRORS: Record<string, string> = {
  error_max_turns: 'The limit of model calls for this turn was reached. Send a message to go on.',
  error_max_budget_usd: 'The budget is used up. Raise it to go on.',
  error_max_structured_output_retries: 'No answer fitted the output format.'
}

/** Whether the model has said something since the last prompt; the text of a result repeats it then. */
function hasAnswer (state: Conversation): boolean {
  for (let index = state.items.length - 1; index >= 0; index--) {
    const kind = state.items[index]!.kind
    if (kind === 'text' || kind === 'tool') return true
    if (kind === 'prompt' || kind === 'turn_end') return false
  }
  return false
}

