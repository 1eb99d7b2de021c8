import type { ReactNode } from 'react'
import { resultText } from '../model/tool-input'
import { splitPictures } from '../model/tool-pictures'
import { OutputText } from './output-text'
import styles from './tool-card.module.css'

/** What a tool returned: pictures as pictures, the rest as text. */
export function ResultView({ content, isError }: { content: unknown; isError: boolean }): ReactNode {
  const { pictures, rest } = splitPictures(content)
  return (
    <>
      {rest !== null && <OutputText label={isError ? 'Error' : 'Result'} text={resultText(rest)} isError={isError} />}
      {pictures.map((address, index) => (
        <img key={index} src={address} alt={`From the tool, ${index + 1} of ${pictures.length}`} className={styles.picture} />
      ))}
    </>
  )
}
