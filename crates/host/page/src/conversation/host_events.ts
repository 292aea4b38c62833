// Events of the host: states, the queue, outcomes of cards, rewinds.

import type { Block, HostEvent, Mode, Person, RequestState, Scope, SessionState, Upload } from '../contract'
import { cancelCard } from './cards'
import { pushNotice, updateTool } from './items'
import { pushPrompt } from './messages'
import { contentPictures, contentText, type Conversation, type Item, type Outcome } from './state'

export function applyHost (state: Conversation, event: HostEvent) {
  const { frame, at, seq } = event
  switch (frame.subtype) {
    case 'state': return applyState(state, frame.state as SessionState, at)
    case 'queued': return applyQueued(state, event)
    case 'given': return applyGiven(state, String(frame.uuid), at)
    case 'taken_back':
      state.queue = state.queue.filter(queued => queued.uuid !== frame.uuid)
      return
    case 'answered': return applyAnswered(state, event)
    case 'settings': return applySettings(state, event)
    case 'interrupted':
      state.interrupted = true
      state.live.clear()
      closeCards(state, 'lost', at)
      stopTools(state, at)
      return pushNotice(state, `event:${seq}`, 'warning', 'The turn was interrupted by a restart.')
    case 'recovered': return
    case 'forked': return pushNotice(state, `event:${seq}`, 'info', 'Forked from here', String(frame.to))
    case 'rewound': return applyRewound(state, event)
    case 'error': return pushNotice(state, `event:${seq}`, 'error', String(frame.message ?? frame.code ?? 'The session failed.'))
  }
}

function applyState (state: Conversation, to: SessionState, at: number) {
  if (to === 'running' && state.state !== 'waiting') state.turnStartedAt = at
  state.state = to
  if (to !== 'interrupted') state.interrupted = false
  if (to === 'resting' || to === 'failed') {
    state.live.clear()
    state.status = null
  }
}

function applyQueued (state: Conversation, { frame, at }: HostEvent) {
  const uuid = String(frame.uuid)
  if (state.queue.some(queued => queued.uuid === uuid)) return
  const content = frame.content as string | Block[]
  state.queue.push({
    uuid,
    text: contentText(content),
    pictures: contentPictures(content),
    by: (frame.by as Person | null | undefined)?.name ?? null,
    at,
    priority: String(frame.priority ?? 'later'),
    uploads: (frame.uploads as Upload[] | undefined) ?? [],
    contextOnly: Boolean(frame.context_only)
  })
}

function applyGiven (state: Conversation, uuid: string, at: number) {
  const queued = state.queue.find(queued => queued.uuid === uuid)
  if (!queued) return
  state.queue = state.queue.filter(other => other !== queued)
  pushPrompt(state, uuid, queued.text, queued.pictures, queued.by, at, queued.uploads.map(upload => upload.name))
}

function applyAnswered (state: Conversation, { frame, at }: HostEvent) {
  const card = state.cards.get(String(frame.request))
  if (!card || card.outcome) return
  const outcome: Outcome = {
    decision: frame.decision as 'allow' | 'deny',
    scope: (frame.scope as Scope | undefined) ?? 'once',
    rule: (frame.rule as string | undefined) ?? null,
    message: (frame.message as string | undefined) ?? null,
    inputChanged: Boolean(frame.input_changed),
    interrupt: Boolean(frame.interrupt),
    mode: (frame.mode as Mode | undefined) ?? null,
    answers: (frame.answers as Outcome['answers'] | undefined) ?? null,
    input: (frame.input as Record<string, unknown> | undefined) ?? null,
    by: (frame.by as Person | undefined) ?? null
  }
  state.cards.set(card.id, { ...card, state: outcome.decision === 'allow' ? 'allowed' : 'denied', closedAt: at, outcome })
  const tool = state.tools.get(card.request.tool_use_id)
  if (tool && outcome.decision === 'allow') updateTool(state, tool.id, { startedAt: at })
}

function applySettings (state: Conversation, { frame, seq }: HostEvent) {
  const by = (frame.by as Person | undefined)?.name
  if (frame.mode) {
    if (state.mode && state.mode !== frame.mode) pushNotice(state, `event:${seq}`, 'info', `Mode: ${MODE_NAMES[frame.mode as Mode] ?? String(frame.mode)}${by ? `, by ${by}` : ''}`)
    state.mode = frame.mode as Mode
    state.liveMode = null
  }
  if (frame.model) {
    if (state.model && state.model !== frame.model) pushNotice(state, `event:${seq}:model`, 'info', `Model: ${String(frame.model)}${by ? `, by ${by}` : ''}`)
    state.model = String(frame.model)
  }
}

export const MODE_NAMES: Record<Mode, string> = {
  default: 'Ask first',
  acceptEdits: 'Accept edits',
  plan: 'Plan',
  bypassPermissions: 'Bypass permissions',
  dontAsk: 'Never ask',
  auto: 'Auto',
  delegate: 'Delegate'
}

function applyRewound (state: Conversation, { frame, seq }: HostEvent) {
  const to = String(frame.to)
  const files = Array.isArray(frame.files) ? frame.files.length : 0
  const undo = String(frame.undo ?? '')
  const undone = state.rewound.find(rewind => rewind.undo === to)
  const conversation = frame.conversation !== false
  if (undone) {
    state.rewound = state.rewound.filter(rewind => rewind !== undone)
    if (conversation) restore(state, undone.to)
    return pushNotice(state, `event:${seq}`, 'info', 'The rewind was undone.')
  }
  state.rewound.push({ undo, to })
  if (conversation) setDropped(state, to)
  const changed = files ? ` ${files} ${files === 1 ? 'file was' : 'files were'} restored.` : ''
  pushNotice(state, `event:${seq}`, 'info', `${conversation ? 'The conversation went back to here.' : 'Files went back to here.'}${changed}`)
}

function setDropped (state: Conversation, to: string) {
  const begin = state.items.findIndex(item => item.kind === 'prompt' && item.uuid === to)
  if (begin < 0) return
  state.items = state.items.map((item, index): Item => index < begin ? item : { ...item, dropped: true })
}

function restore (state: Conversation, to: string) {
  const begin = state.items.findIndex(item => item.kind === 'prompt' && item.uuid === to)
  if (begin < 0) return
  state.items = state.items.map((item, index): Item => index < begin ? item : { ...item, dropped: false })
}

/** Closes every open card; none is left open when its turn has ended. */
export function closeCards (state: Conversation, to: RequestState, at: number) {
  for (const id of state.cards.keys()) cancelCard(state, id, to, at)
}

function stopTools (state: Conversation, at: number) {
  for (const tool of state.tools.values()) {
    if (tool.state === 'running' || tool.state === 'preparing') updateTool(state, tool.id, { state: 'stopped', endedAt: at })
  }
}
