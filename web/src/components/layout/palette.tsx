import { Search } from 'lucide-react'
import { Fragment, type ReactNode, useEffect, useRef, useState } from 'react'
import { type Command, type CommandGroup, commandStore, search } from '@/lib/commands'
import { useStore } from '@/lib/store'
import { Dialog } from '../ui/dialog'
import { Highlighted } from '../ui/highlighted'
import { Kbd } from '../ui/kbd'
import { t } from '../texts'
import textStyles from '../ui/text.module.css'
import styles from './palette.module.css'

interface PaletteProps {
  /** What was found elsewhere for the text, below the commands. */
  more?: readonly Command[]
  onText?: (text: string) => void
  onClose: () => void
}

const none: readonly Command[] = []

/** Everything that can be done here, found by a few letters. */
export function Palette({ more = none, onText, onClose }: PaletteProps): ReactNode {
  const [text, setText] = useState('')
  const [chosen, setChosen] = useState(0)
  const commands = useStore(commandStore)
  const found = [...inGroups(search(commands, text), text.trim() !== ''), ...(text.trim() === '' ? none : more)]
  const list = useRef<HTMLUListElement>(null)
  const current = Math.min(chosen, Math.max(0, found.length - 1))

  useEffect(() => {
    list.current?.querySelector('[aria-selected=true]')?.scrollIntoView({ block: 'nearest' })
  }, [current])

  const run = (command: Command | undefined): void => {
    if (!command) return
    onClose()
    // After the dialog has given the focus back, so that the command may put it elsewhere.
    setTimeout(() => command.run())
  }

  return (
    <Dialog title={t.commands} isBare onClose={onClose}>
      <div className={styles.search}>
        <Search size={17} aria-hidden />
        <input
          role="combobox"
          aria-label={t.searchRoomsAndCommands}
          aria-expanded
          aria-controls="palette-list"
          aria-activedescendant={found[current] ? `command-${found[current].id}` : undefined}
          placeholder={t.searchRoomsAndCommands}
          value={text}
          onChange={(event) => {
            setText(event.target.value)
            onText?.(event.target.value)
            setChosen(0)
          }}
          onKeyDown={(event) => {
            if (event.key === 'ArrowDown') setChosen((current + 1) % Math.max(1, found.length))
            else if (event.key === 'ArrowUp') setChosen((current - 1 + found.length) % Math.max(1, found.length))
            else if (event.key === 'Enter') run(found[current])
            else return
            event.preventDefault()
          }}
        />
      </div>
      <ul id="palette-list" role="listbox" aria-label={t.commands} className={styles.list} ref={list}>
        {found.map((command, index) => (
          <Fragment key={command.id}>
            {command.group !== found[index - 1]?.group && (
              <li role="presentation" className={styles.group}>
                {groupTitle(command.group)}
              </li>
            )}
            <Entry command={command} isChosen={index === current} onChoose={() => run(command)} />
          </Fragment>
        ))}
        {found.length === 0 && <li className={styles.nothing}>{t.noResults}</li>}
      </ul>
    </Dialog>
  )
}

function Entry({ command, isChosen, onChoose }: { command: Command; isChosen: boolean; onChoose: () => void }): ReactNode {
  return (
    // The input keeps the focus and handles the keys for the whole list.
    // oxlint-disable-next-line jsx-a11y/click-events-have-key-events
    <li
      role="option"
      id={`command-${command.id}`}
      aria-selected={isChosen}
      tabIndex={-1}
      className={styles.entry}
      onClick={onChoose}
    >
      <span className={styles.title} dir="auto">{command.snippet ? <Highlighted snippet={command.snippet} /> : command.title}</span>
      {command.detail && <span className={textStyles.detail}>{command.detail}</span>}
      {command.keys && (
        <span className={styles.keys}>
          <Kbd keys={command.keys} />
        </span>
      )}
    </li>
  )
}

/** Of each group, so that many rooms leave a place for commands. */
const mostOfGroup = 12

/** What belongs together stands together, the group with the best match first; without a search, commands come before rooms. */
function inGroups(commands: Command[], isSearch: boolean): Command[] {
  const groups = [...new Set(commands.map((command) => command.group))]
  const sorted = isSearch ? groups : groups.toSorted((a, b) => order.indexOf(a) - order.indexOf(b))
  return sorted.flatMap((group) => commands.filter((command) => command.group === group).slice(0, mostOfGroup))
}

const order: readonly CommandGroup[] = ['room', 'app', 'agents', 'rooms', 'messages']

function groupTitle(group: CommandGroup): string {
  return { room: t.room, app: 'Greenroom', agents: t.agents, rooms: t.rooms, messages: t.messages }[group]
}
