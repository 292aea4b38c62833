// Appending to the lists of items, and changing items in place of others.

import type { Conversation, Item, Tool } from './state'

/** The list that items of this agent belong to: the main one, or that of the call which started the agent. */
export function listOf (state: Conversation, parent: string | null): Item[] {
  if (parent === null) return state.items
  return state.children.get(parent) ?? []
}

export function pushItem (state: Conversation, parent: string | null, item: Item) {
  if (parent === null) state.items.push(item)
  else state.children.set(parent, [...listOf(state, parent), item])
}

export function pushNotice (state: Conversation, key: string, level: 'info' | 'warning' | 'error', text: string, session?: string) {
  const item: Item = { kind: 'notice', key, level, text, dropped: false }
  if (session) item.session = session
  state.items.push(item)
}

export function newTool (id: string, name: string, parent: string | null): Tool {
  return {
    id,
    name,
    input: {},
    partial: '',
    state: 'preparing',
    result: '',
    pictures: [],
    meta: null,
    output: '',
    omittedBytes: 0,
    progress: '',
    startedAt: 0,
    endedAt: 0,
    parent,
    cutSeq: 0,
    seq: 0
  }
}

/** Changes a tool call; one that is not known yet is made, since progress may come before the call itself. */
export function updateTool (state: Conversation, id: string, change: Partial<Tool>) {
  state.tools.set(id, { ...(state.tools.get(id) ?? newTool(id, '', null)), ...change })
}
