package main
import ("testing";"context";"fmt";"os";"github.com/worldkernel/worldkernel/world/local")
func TestProfDrive(t *testing.T){
 if os.Getenv("PROF")=="" {t.Skip()}
 opts := benchOptions()
 dir:=t.TempDir()
 lw,err:=benchWorld(dir, map[string]string{local.ManifestFile: fmt.Sprintf(benchManifest, `engine: go, name: account, version: "1"`)}, opts)
 if err!=nil {panic(err)}
 m,_:=measure(func() error{ return drive(context.Background(),lw,&load{events:1000000,cells:10000},benchChunk)})
 fmt.Println(m, float64(m.CPU.Nanoseconds())/1000000, float64(m.Allocs)/1000000)
 if os.Getenv("PROF")=="replay" { m,_=measure(func() error{ _,err:=lw.Replay(0,nil); return err}); fmt.Println(m) }
 lw.Close()
}
