// Times, durations, costs and paths in the form that people read.

export function clock (at: number): string {
  return new Date(at).toLocaleTimeString([], { hour: '2-digit', minute: '2-digit' })
}

export function duration (ms: number): string {
  if (ms < 950) return `${Math.max(0, Math.round(ms / 10) * 10)} ms`
  const seconds = ms / 1000
  if (seconds < 9.95) return `${seconds.toFixed(1)} s`
  if (seconds < 59.5) return `${Math.round(seconds)} s`
  const minutes = Math.floor(Math.round(seconds) / 60)
  if (minutes < 60) return `${minutes} min ${Math.round(seconds) % 60} s`
  return `${Math.floor(minutes / 60)} h ${minutes % 60} min`
}

/** How long ago, in one short word. */
export function ago (at: number, now = Date.now()): string {
  const minutes = Math.floor((now - at) / 60_000)
  if (minutes < 1) return 'now'
  if (minutes < 60) return `${minutes} min`
  const hours = Math.floor(minutes / 60)
  if (hours < 24) return `${hours} h`
  const days = Math.floor(hours / 24)
  if (days < 7) return `${days} d`
  return new Date(at).toLocaleDateString([], { day: 'numeric', month: 'short', year: days > 300 ? 'numeric' : undefined })
}

export function moment (at: number): string {
  return new Date(at).toLocaleString([], { day: 'numeric', month: 'short', hour: '2-digit', minute: '2-digit' })
}

export function cost (usd: number): string {
  if (usd === 0) return '$0.00'
  if (usd < 0.01) return `$${usd.toFixed(4)}`
  return `$${usd.toFixed(2)}`
}

export function count (value: number): string {
  if (value < 1000) return String(value)
  if (value < 1_000_000) return `${(value / 1000).toFixed(value < 10_000 ? 1 : 0)}k`
  return `${(value / 1_000_000).toFixed(1)}M`
}

export function bytes (size: number): string {
  if (size < 1024) return `${size} B`
  if (size < 1 << 20) return `${Math.round(size / 1024)} KB`
  return `${(size / (1 << 20)).toFixed(1)} MB`
}

export function plural (value: number, word: string): string {
  return `${value.toLocaleString('en')} ${word}${value === 1 ? '' : 's'}`
}

/** A path as seen from a folder. */
export function relativePath (path: string, folder: string): string {
  if (path === folder) return '.'
  return path.startsWith(`${folder}/`) ? path.slice(folder.length + 1) : path
}

export function baseName (path: string): string {
  return path.replace(/\/+$/, '').split('/').pop() || path
}

/** One of eight hues by name, so that a folder keeps its color. */
export function hue (name: string): number {
  let hash = 7
  for (const character of name) hash = (hash * 31 + character.codePointAt(0)!) >>> 0
  return hash % 8
}
