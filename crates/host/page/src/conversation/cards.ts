// Cards: requests that wait for a person, as they stand in the conversation.

import type { CanUseTool, ElicitationRequest, HostEvent, RequestKind, RequestState } from '../contract'
import type { Conversation } from './state'

export function requestKind (request: { subtype: string, tool_name?: string }): RequestKind {
  if (request.subtype === 'elicitation') return 'elicitation'
  if (request.tool_name === 'AskUserQuestion') return 'question'
  if (request.tool_name === 'ExitPlanMode') return 'plan'
  return 'permission'
}

export function applyCard (state: Conversation, { frame, at }: HostEvent) {
  const id = String(frame.request_id)
  const request = frame.request as CanUseTool & ElicitationRequest
  if (state.cards.has(id) || (request.subtype !== 'can_use_tool' && request.subtype !== 'elicitation')) return
  state.cards.set(id, { id, kind: requestKind(request), request, openedAt: at, state: 'open', closedAt: 0, outcome: null })
  state.items.push({ kind: 'card', key: `card:${id}`, id, dropped: false })
}

/** Closes a card without an answer. */
export function cancelCard (state: Conversation, id: string, to: RequestState, at: number) {
  const card = state.cards.get(id)
  if (card?.state === 'open') state.cards.set(id, { ...card, state: to, closedAt: at })
}
